"""What a batch uses and who said so."""

import pytest

from schemas.suite import EvalConfig
from service.batch_settings import refuse_command, refuse_self_judge, resolve
from service.errors import BadInput
from service.settings import Settings


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ASSAY_RUNS_PER_EVAL", "ASSAY_RUNNER", "ASSAY_COMMAND"):
        monkeypatch.delenv(name, raising=False)


def test_the_submit_goes_before_the_suite_and_the_suite_before_the_installation() -> None:
    config = EvalConfig(runs_per_eval=5, structural_gate=False)

    settings = resolve({"command": "./agent", "runs_per_eval": 7}, config, Settings(baseline_comparison=False))

    assert settings["runs_per_eval"] == {"value": 7, "source": "submit"}
    assert settings["structural_gate"] == {"value": False, "source": "suite"}
    assert settings["baseline_comparison"] == {"value": False, "source": "installation"}
    assert settings["execute_timeout_seconds"] == {"value": 600.0, "source": "default"}


def test_three_runs_are_the_default() -> None:
    assert resolve({"command": "x"}, None, Settings())["runs_per_eval"] == {"value": 3, "source": "default"}


def test_a_command_is_split_as_a_shell_would() -> None:
    settings = resolve({"command": "bash -c 'echo hi'"}, None, Settings())

    assert settings["command"]["value"] == ["bash", "-c", "echo hi"]
    assert settings["runner"]["value"] == "command"


def test_with_a_model_and_no_command_the_messages_runner_is_used() -> None:
    assert resolve({"executor_model": "m"}, None, Settings())["runner"]["value"] == "messages"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"command": "x", "runs": 3}, "unknown setting 'runs'"),
        ({"command": "x", "runs_per_eval": 0}, "runs_per_eval .from the submit. is 0"),
        ({"command": "x 'open"}, "cannot be split into words"),
        ({}, "the messages runner needs a model"),
        ({"runner": "command"}, "the command runner needs a program"),
        ({"executor_model": "m", "judge_model": "m"}, "m would judge its own work"),
        ({"executor_model": "m", "judge_models": ["a", "m"]}, "m would judge its own work"),
    ],
)
def test_what_cannot_be_is_refused_with_a_reason(given: dict[str, object], words: str) -> None:
    with pytest.raises(BadInput, match=words):
        resolve(given, None, Settings())


def test_a_bad_value_in_the_suite_names_the_suite() -> None:
    with pytest.raises(BadInput, match="from the suite"):
        resolve({"command": "x"}, EvalConfig(runs_per_eval=0), Settings())


def test_judging_ones_own_work_can_be_allowed() -> None:
    given = {"executor_model": "m", "judge_model": "m", "allow_self_judge": True}

    assert resolve(given, None, Settings())["allow_self_judge"] == {"value": True, "source": "submit"}


ALLOWED = ["true", "/bin/bash /opt/agents/main.sh", "/opt/programs/"]


@pytest.mark.parametrize(
    "command",
    [
        None,
        "true",
        "/bin/bash '/opt/agents/main.sh'",
        ["/bin/bash", "/opt/agents/main.sh"],
        "/opt/programs/agent --fast /opt/programs/agent.json",
    ],
)
def test_a_command_that_the_operator_named_may_come_from_afar(command: object) -> None:
    refuse_command({"command": command} if command else {}, ALLOWED)
    refuse_command({"command": "anything at all"}, ["*"])


@pytest.mark.parametrize(
    "command",
    [
        "/bin/cat /var/lib/assay/assay.db",
        "true /etc/passwd",
        "/bin/bash /opt/agents/other.sh",
        "/opt/programs/agent /var/lib/assay/assay.db",
        "/opt/programs/../agents/main.sh",
        "/opt/programs/agent /opt/programs/../../etc/passwd",
        "/opt/programsx",
        "bash -c true",
    ],
)
def test_any_other_command_from_afar_is_refused(command: str) -> None:
    for allowed in (ALLOWED, []):
        with pytest.raises(BadInput, match="not allowed here; ask the operator to add it to ASSAY_COMMANDS"):
            refuse_command({"command": command}, allowed)


def test_a_budget_is_refused_where_every_process_would_spend_it_anew() -> None:
    alone = Settings(broker_url="amqp://here//")
    shared = Settings(broker_url="amqp://here//", limits_url="redis://here")

    with pytest.raises(BadInput, match="ASSAY_LIMITS_URL"):
        resolve({"command": "x", "max_cost_usd": 5.0}, None, alone)
    assert resolve({"command": "x"}, None, alone)["max_cost_usd"]["value"] is None
    assert resolve({"command": "x", "max_cost_usd": 5.0}, None, shared)["max_cost_usd"]["value"] == 5.0
    assert resolve({"command": "x", "max_cost_usd": 5.0}, None, Settings())["max_cost_usd"]["value"] == 5.0


@pytest.mark.parametrize(
    ("executor", "judge"),
    [
        ("claude-sonnet-4-5", "claude-sonnet-4-5-20250929"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
        ("claude-sonnet-4-5@20250929", "claude-sonnet-4-5-20250929"),
        ("claude-sonnet-4-5-latest", "claude-sonnet-4-5"),
    ],
)
def test_a_model_does_not_judge_its_own_work_under_a_dated_name(executor: str, judge: str) -> None:
    with pytest.raises(BadInput, match="would judge its own work"):
        refuse_self_judge(executor, [judge], allow_self_judge=False)

    refuse_self_judge(executor, [judge], allow_self_judge=True)
    refuse_self_judge("claude-sonnet-4-5", ["claude-sonnet-4-6-20250929", None], allow_self_judge=False)
