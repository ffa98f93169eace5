"""The doctor tells the truth about real servers, and never a password."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app
from service.errors import BadInput
from service.settings import load_settings
from service.storage.engine import open_engine
from service.storage.schema import migrate


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("ASSAY_SANDBOX", "none")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)


def examined() -> tuple[dict[str, tuple[str, str]], int, str]:
    """what -> (health, detail), the exit code, and all of it as text."""
    done = CliRunner().invoke(app, ["doctor"])
    lines = [line.split(None, 1) for line in done.stdout.splitlines()]
    found = {}
    for health, rest in lines:
        what, _, detail = rest.partition("  ")
        found[what] = (health, detail.strip())
    return found, done.exit_code, done.stdout


def test_a_fresh_machine_is_well_and_nothing_is_left_behind(tmp_path: Path) -> None:
    found, code, text = examined()

    assert code == 0 and len(text.splitlines()) <= 20
    expected = {
        "python",
        "versions",
        "user",
        "sandbox",
        "database",
        "broker",
        "limits",
        "models",
        "disk data",
        "disk work",
        "clock",
    }
    assert set(found) >= expected
    assert found["models"][0] == "note" and "no key" in found["models"][1]
    assert not (tmp_path / "data").exists()


def test_a_fleets_servers_are_asked(redis_url: str, postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_DATABASE_URL", postgres_url)
    monkeypatch.setenv("ASSAY_BROKER_URL", redis_url)

    empty, code_of_empty, _ = examined()
    engine = open_engine(postgres_url)
    migrate(engine)
    engine.dispose()
    ready, code_of_ready, _ = examined()

    assert code_of_empty == 1 and empty["migrations"][0] == "broken" and "assay migrate" in empty["migrations"][1]
    assert code_of_ready == 0 and ready["migrations"][0] == "ok"
    assert ready["database"][1].startswith("PostgreSQL") and ready["broker"][1].startswith("Redis")
    assert ready["clock"] == ("ok", "0.0 s from the database's")


def test_what_does_not_answer_is_broken_and_no_secret_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_DATABASE_URL", "postgresql+psycopg://me:s3cret@127.0.0.1:1/assay")
    monkeypatch.setenv("ASSAY_BROKER_URL", "redis://:s3cret@127.0.0.1:1/0")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-s3cret")

    found, code, text = examined()

    assert code == 1 and "s3cret" not in text
    assert {what for what, (health, _) in found.items() if health == "broken"} == {"database", "broker"}
    assert found["models"][0] == "ok"


def test_a_fleets_limits_are_asked_for_and_their_absence_is_noted(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_BROKER_URL", "amqp://127.0.0.1:1//")
    alone, _, _ = examined()
    monkeypatch.setenv("ASSAY_LIMITS_URL", redis_url)
    shared, _, _ = examined()
    monkeypatch.setenv("ASSAY_LIMITS_URL", "redis://:s3cret@127.0.0.1:1/0")
    away, code, text = examined()

    assert alone["limits"][0] == "note" and "ASSAY_LIMITS_URL" in alone["limits"][1]
    assert shared["limits"][0] == "ok"
    assert away["limits"][0] == "broken" and code == 1 and "s3cret" not in text


@pytest.mark.parametrize("command", [["worker", "judge"], ["serve"]])
def test_a_fleet_whose_processes_would_each_keep_the_whole_budget_does_not_start(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_BROKER_URL", "amqp://127.0.0.1:1//")
    monkeypatch.setenv("ASSAY_DATABASE_URL", "postgresql+psycopg://127.0.0.1:1/none")
    monkeypatch.setenv("ASSAY_TEAM_MONTH_MAX_COST_USD", "100")

    done = CliRunner().invoke(app, command)
    found, _, _ = examined()

    assert isinstance(done.exception, BadInput)
    assert "ASSAY_TEAM_MONTH_MAX_COST_USD" in str(done.exception) and "ASSAY_LIMITS_URL" in str(done.exception)
    assert found["limits"][0] == "broken"


def test_limits_that_are_no_redis_are_refused_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_LIMITS_URL", "amqp://somewhere")

    with pytest.raises(BadInput, match=r"ASSAY_LIMITS_URL .* kept in redis"):
        load_settings()


def test_a_model_without_a_key_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ASSAY_JUDGE_MODEL", "some-model")

    found, code, _ = examined()

    assert code == 1 and "set ANTHROPIC_API_KEY" in found["models"][1]


def test_a_redis_that_may_drop_messages_is_noted(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import redis

    monkeypatch.setenv("ASSAY_BROKER_URL", redis_url)
    with redis.Redis.from_url(redis_url) as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        found, _, _ = examined()
        client.config_set("maxmemory-policy", "noeviction")

    assert found["broker"][0] == "note" and "noeviction" in found["broker"][1]
