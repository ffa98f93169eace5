"""Every knob of an installation, once. Nothing else reads the environment."""

import os
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlsplit

from pydantic import Field, SecretStr, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SecretsSettingsSource, SettingsConfigDict

from service.errors import BadInput

# URLs are written down without the password that belongs in them: it is a secret of its own, in a file of its own.
_PASSWORDS = {"database_url": "database_password", "broker_url": "broker_password", "limits_url": "broker_password"}


class Settings(BaseSettings):
    """What an installation may set, as ASSAY_<NAME>, or in a file assay_<name> of the secrets folder.

    The environment comes before the file; an empty one counts as unset. A file .env is not read.
    """

    model_config = SettingsConfigDict(env_prefix="ASSAY_", env_ignore_empty=True, frozen=True, extra="ignore")

    # where things are
    data: Path = Field(Path(".assay"), description="the data folder: database, artifacts and workspaces by default")
    database_url: str | None = Field(None, description="PostgreSQL for a fleet; SQLite in the data folder if unset")
    broker_url: str | None = Field(None, description="Redis or RabbitMQ for a fleet; inside the process if unset")
    database_password: SecretStr | None = Field(None, description="put into the database's URL, if that has none")
    broker_password: SecretStr | None = Field(
        None, description="put into the broker's and the limits' URL, if that has none"
    )
    limits_url: str | None = Field(
        None,
        description="Redis for the fleet's limits and budgets; the broker if that is Redis, else each process's own",
    )
    secrets: Path = Field(Path("/run/secrets"), description="a folder with one file per setting, named assay_<name>")
    artifacts: Literal["filesystem", "database"] = Field("filesystem", description="where artifacts are kept")
    artifact_folder: Path | None = Field(None, description="artifacts on a shared mount; in the data folder if unset")
    artifact_max_bytes: int = Field(64 * 2**20, gt=0, description="the largest artifact that is kept")
    run_max_bytes: int = Field(256 * 2**20, gt=0, description="all outputs of a run together")
    run_max_files: int = Field(2_000, gt=0, description="how many output files of a run are kept")

    # defaults of a batch; the suite's eval_config and the submit override them
    runs_per_eval: int = Field(3, ge=1, le=1_000, description="runs per case and configuration")
    structural_gate: bool = Field(True, description="a failed critical structural expectation skips the judge")
    baseline_comparison: bool = Field(True, description="also run every case without the skill")
    executor_model: str | None = Field(None, description="model of the executor")
    judge_model: str | None = Field(None, description="model of the judge")
    judge_models: list[str] | None = Field(None, description="a panel of judges instead of one, as a JSON list")
    judging: Literal["realtime", "batch", "auto"] = Field(
        "realtime", description="batch: at half the price, within a day; auto: batch for large batches"
    )
    allow_self_judge: bool = Field(False, description="the executor's model may judge its own work")
    rejudge_share: float = Field(0.1, ge=0, le=1, description="share of runs judged once more, to measure the judge")
    analyst: bool = Field(True, description="the judge's model adds notes and merges feedback when a batch ends")
    max_cost_usd: float | None = Field(None, gt=0, description="what a batch may cost")
    max_tokens: int | None = Field(None, gt=0, description="what a batch may use")
    runner: str | None = Field(None, description="command, messages or claude_code; by what else is set if unset")
    command: str | None = Field(None, description="program of the command runner, split as a shell would")

    # the pipeline
    window: int = Field(
        256, ge=1, description="runs open at once over all batches; about twice the slots of all workers"
    )
    lease_seconds: float = Field(30.0, gt=0, description="how long a silent worker keeps a run")
    heartbeat_seconds: float = Field(5.0, gt=0, description="how often a worker says it still works")
    sweep_seconds: float = Field(1.0, gt=0, description="how often recovery looks around")
    overtaken_seconds: float = Field(5.0, gt=0, description="a message overtaken by this much counts as lost")
    max_attempts: int = Field(5, ge=1, description="claims of one stage before a run settles as infra_error")
    busy_timeout_seconds: float = Field(
        6 * 3_600.0, gt=0, description="how long a run waits for a busy model before it settles as infra_error"
    )
    execute_timeout_seconds: float = Field(600.0, gt=0, description="deadline of one execution")
    check_timeout_seconds: float = Field(120.0, gt=0, description="deadline of one check")
    judge_timeout_seconds: float = Field(300.0, gt=0, description="deadline of one judgement")
    grace_seconds: float = Field(20.0, ge=0, description="how long a stopping worker lets its runs end")

    # models
    rates: dict[str, dict[str, int]] = Field(
        default_factory=dict, description="requests, input_tokens, output_tokens per minute by model, as JSON"
    )
    lane_age_seconds: float = Field(300.0, gt=0, description="how long a half-price judgement waits for company")
    lane_poll_seconds: float = Field(30.0, gt=0, description="how often half-price judgements are asked for")
    team_month_max_cost_usd: float | None = Field(None, gt=0, description="what a team may spend in a month")
    team_month_max_tokens: int | None = Field(None, gt=0, description="what a team may use in a month")
    judge_text_chars: int = Field(240_000, ge=0, description="text outputs that the judge is shown, all together")
    judge_transcript_chars: int = Field(120_000, ge=0, description="of the transcript that the judge is shown")
    judge_native_bytes: int = Field(8 * 2**20, ge=0, description="images and PDFs that the judge is shown")
    judge_effort: Literal["low", "medium", "high", "xhigh", "max"] | None = Field(
        None, description="how much the judge thinks; the model's own choice if unset"
    )
    judge_file_max_bytes: int = Field(8 * 2**20, gt=0, description="larger outputs are named to the judge, not shown")

    # worker roles
    executor_concurrency: int = Field(16, ge=1, description="executions at once in one executor process")
    checker_concurrency: int = Field(2, ge=1, description="checks at once in one checker process")
    judge_concurrency: int = Field(64, ge=1, description="judgements at once in one judge process")
    compare_concurrency: int = Field(8, ge=1, le=200, description="questions at once in one comparison")
    aggregator_concurrency: int = Field(2, ge=1, description="aggregates at once in one aggregator process")

    # safety
    commands: list[str] = Field(
        default_factory=list,
        description="commands that HTTP may choose, or folders of programs (ending in /), as a JSON list; * is any",
    )
    command_network: bool = Field(False, description="the command runner may use the network")
    sandbox: Literal["bwrap", "landlock", "none", "best"] = Field("bwrap", description="how commands are confined")

    # who
    team: str = Field("default", description="the team of local commands")
    anthropic_api_key: SecretStr | None = Field(None, validation_alias="ANTHROPIC_API_KEY", description="model access")
    anthropic_base_url: str | None = Field(None, validation_alias="ANTHROPIC_BASE_URL", description="a gateway")

    # the API
    upload_max_bytes: int = Field(20_000_000, gt=0, description="the largest archive a submit may bring")
    body_max_bytes: int = Field(8 * 2**20, gt=0, description="the largest request besides its archive")
    requests_per_minute: int = Field(3_000, ge=1, description="requests of one token in each API process")
    most_watchers: int = Field(2_000, ge=1, description="event streams at once in each API process")
    webhook_private: bool = Field(False, description="webhooks may go to private addresses")

    # Flower
    flower_address: str = Field("127.0.0.1", description="where Flower listens")
    flower_port: int = Field(5555, ge=1, le=65_535, description="the port Flower listens on")
    flower_auth: SecretStr | None = Field(None, description="user:password for Flower, several divided by commas")
    flower_read_only: bool = Field(True, description="Flower shows and does not act")

    # the command line as a client
    server: str | None = Field(None, description="the API that commands talk to; the data folder if unset")
    token: SecretStr | None = Field(None, description="the bearer token for it")
    client_file: Path = Field(
        Path("~/.config/assay/client.toml"), description="server and token, where the environment has none"
    )

    # what people see
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="how much is logged")
    log_format: Literal["text", "json"] = Field("text", description="json for machines")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003  the library's signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003  the same
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """What is said, then the environment, then the files of the secrets folder."""
        folder = Path(os.environ.get("ASSAY_SECRETS") or settings_cls.model_fields["secrets"].default)
        files = [SecretsSettingsSource(settings_cls, folder)] if folder.is_dir() else []
        return init_settings, env_settings, *files

    @field_validator("limits_url")
    @classmethod
    def _limits_are_kept_in_redis(cls, url: str | None) -> str | None:
        if url is not None and not url.startswith(("redis://", "rediss://")):
            raise ValueError("limits and budgets are kept in Redis; give a redis:// URL")
        return url

    @model_validator(mode="before")
    @classmethod
    def _put_passwords_into_urls(cls, given: dict[str, Any]) -> dict[str, Any]:
        given = {name: value for name, value in given.items() if value != ""}
        for url, password in _PASSWORDS.items():
            if given.get(url) and given.get(password):
                given[url] = with_password(str(given[url]), given[password])
        return given

    @property
    def database(self) -> str:
        """The database's URL, whichever was chosen."""
        return self.database_url or f"sqlite:///{(self.data / 'assay.db').resolve()}"

    @property
    def is_embedded(self) -> bool:
        """Whether API, workers and broker share one process."""
        return self.broker_url is None

    @property
    def limits(self) -> str | None:
        """The Redis that limits and budgets are kept in; None: every process has its own."""
        shared = self.broker_url if (self.broker_url or "").startswith("redis") else None
        return self.limits_url or shared

    @property
    def scatters_limits(self) -> bool:
        """Whether every process of a fleet would keep limits and budgets of its own."""
        return not self.is_embedded and self.limits is None

    @property
    def artifact_root(self) -> Path:
        """Where the filesystem store keeps artifacts."""
        return self.artifact_folder or self.data / "artifacts"


def with_password(url: str, password: str | SecretStr) -> str:
    """The URL with a password in it; one that has its own stays as it is."""
    parts = urlsplit(url)
    if parts.password is not None or not parts.hostname:
        return url
    user, _, place = parts.netloc.rpartition("@")
    secret = password.get_secret_value() if isinstance(password, SecretStr) else password
    return parts._replace(netloc=f"{user}:{quote(secret, safe='')}@{place}").geturl()


def load_settings(**said: object) -> Settings:
    """Settings from the environment, with what a command line said on top; a wrong one is one sentence."""
    try:
        return Settings(**{name: value for name, value in said.items() if value is not None})  # type: ignore[arg-type]
    except OSError as error:
        raise BadInput(f"cannot read {error.filename}: {error.strerror}; secrets must be readable by us") from error
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise BadInput(f"ASSAY_{name.upper()} is {first['input']!r}: {first['msg'].lower()}") from error


def require_shared_limits(settings: Settings) -> None:
    """Refuse a fleet whose every process would allow itself the rates and budgets that were meant for all together."""
    names = ("rates", "max_cost_usd", "max_tokens", "team_month_max_cost_usd", "team_month_max_tokens")
    wanted = [f"ASSAY_{name.upper()}" for name in names if getattr(settings, name)]
    if settings.scatters_limits and wanted:
        raise BadInput(
            f"{' and '.join(wanted)} would hold for each process alone, because this broker is no Redis; "
            "set ASSAY_LIMITS_URL to a Redis for the whole fleet"
        )


def embedded_settings(**said: object) -> Settings:
    """Settings for one process that is everything: SQLite and the broker inside, whatever the environment says."""
    wanted = load_settings(**said).model_dump()
    return Settings.model_construct(
        _fields_set=None, **{**wanted, "database_url": None, "broker_url": None, "limits_url": None}
    )
