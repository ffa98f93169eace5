"""Passwords come by file and find their way into the URLs, and nowhere else."""

import stat
import subprocess
from pathlib import Path

import pytest

from service.errors import BadInput
from service.settings import Settings, load_settings, with_password

ROOT = Path(__file__).parents[3]


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "secrets"
    folder.mkdir()
    monkeypatch.setenv("ASSAY_SECRETS", str(folder))
    for name in ("ASSAY_DATABASE_URL", "ASSAY_BROKER_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return folder


def test_passwords_in_files_are_put_into_the_urls(secrets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (secrets / "assay_database_password").write_text("p@ss/word\n")
    (secrets / "assay_broker_password").write_text("s3cret\n")
    (secrets / "anthropic_api_key").write_text("sk-key\n")
    monkeypatch.setenv("ASSAY_DATABASE_URL", "postgresql+psycopg://assay@postgres:5432/assay")
    monkeypatch.setenv("ASSAY_BROKER_URL", "redis://redis:6379/0")

    settings = load_settings()

    assert settings.database_url == "postgresql+psycopg://assay:p%40ss%2Fword@postgres:5432/assay"
    assert settings.broker_url == "redis://:s3cret@redis:6379/0"
    assert settings.anthropic_api_key and settings.anthropic_api_key.get_secret_value() == "sk-key"
    assert Settings.model_validate(settings.model_dump()).broker_url == settings.broker_url


def test_the_environment_comes_before_the_file(secrets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (secrets / "anthropic_api_key").write_text("from the file")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "from the environment")

    key = load_settings().anthropic_api_key

    assert key and key.get_secret_value() == "from the environment"


def test_empty_means_unset(secrets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (secrets / "anthropic_api_key").write_text("\n")
    monkeypatch.setenv("ASSAY_MAX_COST_USD", "")
    monkeypatch.setenv("ASSAY_JUDGE_MODEL", "")

    settings = load_settings()

    assert (settings.anthropic_api_key, settings.max_cost_usd, settings.judge_model) == (None, None, None)


def test_a_missing_secrets_folder_is_no_trouble(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ASSAY_SECRETS", str(tmp_path / "nowhere"))

    assert load_settings().flower_auth is None


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://redis:6379/0", "redis://:pw@redis:6379/0"),
        ("redis://:own@redis:6379/0", "redis://:own@redis:6379/0"),
        ("rediss://user@redis/1?ssl_cert_reqs=required", "rediss://user:pw@redis/1?ssl_cert_reqs=required"),
        ("amqp://assay@rabbitmq:5672//", "amqp://assay:pw@rabbitmq:5672//"),
        ("postgresql+psycopg://assay@[::1]:5432/assay", "postgresql+psycopg://assay:pw@[::1]:5432/assay"),
        ("sqlite:////var/lib/assay/assay.db", "sqlite:////var/lib/assay/assay.db"),
    ],
)
def test_a_password_goes_where_urls_have_it(url: str, expected: str) -> None:
    assert with_password(url, "pw") == expected


def test_a_wrong_setting_is_one_sentence_without_secrets(secrets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (secrets / "assay_database_password").write_text("s3cret")
    monkeypatch.setenv("ASSAY_WINDOW", "none")

    with pytest.raises(BadInput) as refused:
        load_settings()

    assert "ASSAY_WINDOW is 'none'" in str(refused.value) and "s3cret" not in str(refused.value)


def test_the_script_makes_secrets_once_and_keeps_others_out(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    command = [str(ROOT / "deploy" / "make-secrets.sh"), str(folder)]
    subprocess.run(command, check=True, capture_output=True)
    first = {path.name: path.read_text() for path in folder.iterdir()}

    again = subprocess.run(command, check=True, capture_output=True, text=True)

    assert again.stdout == "" and {path.name: path.read_text() for path in folder.iterdir()} == first
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert first["assay_flower_auth"].startswith("assay:") and first["anthropic_api_key"] == ""
    passwords = [first["assay_database_password"], first["assay_broker_password"], first["assay_flower_auth"][6:]]
    assert len(set(passwords)) == 3 and all(len(password.strip()) >= 32 for password in passwords)
