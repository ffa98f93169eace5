"""What the API says and hears, as models: the words of the glossary, times as seconds since 1970."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from schemas.findings import Finding, Level
from schemas.states import BatchState, Outcome, Role, Stage
from service.aggregation.gates import GateState
from service.batches import Status
from service.judging.estimate import Estimate
from service.results import Gated
from service.storage.rows import BatchRow, Blob, RunRow, SkillVersionRow
from service.storage.views import BatchLine
from service.submitting import Accepted, Preview

ID_PATTERN = "^[0-9a-hjkmnp-tv-z]{26}$"
_BATCH = "01k3mz8w5tq4x7c9y2b6n0p1rs"

# Text that a database keeps: no NUL (half surrogates are refused by pydantic itself).
Text = Annotated[str, Field(pattern=r"^[^\x00]*$", max_length=10_000)]
Name = Annotated[str, Field(pattern=r"^[^\x00]+$", min_length=1, max_length=200)]


_PORT = "[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5]"
_LABEL = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_WEB_ADDRESS = rf"^https?://{_LABEL}(\.{_LABEL}){{0,30}}(:({_PORT}))?(/[!-~]*)?$"


def _example(**values: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [values]})


class Heard(BaseModel):
    """Something a client sends; what it does not know it refuses."""

    model_config = ConfigDict(extra="forbid")


class Problem(BaseModel):
    """What went wrong (RFC 9457)."""

    model_config = _example(
        type="urn:assay:problem:not-found",
        title="there is no such thing, or it is not yours",
        status=404,
        detail=f"there is no batch {_BATCH}",
        remedy="check the id and the team of your token",
        instance="urn:assay:request:5f0c",
    )

    type: str = Field(description="Stable, for programs.")
    title: str
    status: int
    detail: str = Field(description="What, which one, and what to do.")
    remedy: str
    instance: str = Field(description="The id of the request, as in the log.")
    errors: list["ProblemPlace"] | None = Field(None, description="Every place that is wrong.")


class ProblemPlace(BaseModel):
    """One place that is wrong."""

    path: str = Field(description="JSON path, such as settings.runs_per_eval or evals[2].prompt.")
    message: str
    code: str


class BatchSettings(Heard):
    """What a submit may set; the suite, the installation and our defaults fill the rest."""

    runs_per_eval: int | None = Field(None, ge=1, le=1_000)
    baseline_comparison: bool | None = None
    structural_gate: bool | None = None
    runner: Name | None = None
    command: Text | None = None
    executor_model: Name | None = None
    judge_model: Name | None = None
    judge_models: list[Name] | None = Field(None, min_length=1, max_length=9)
    judging: Literal["realtime", "batch", "auto"] | None = None
    allow_self_judge: bool | None = None
    rejudge_share: float | None = Field(None, ge=0, le=1)
    analyst: bool | None = None
    max_cost_usd: float | None = Field(None, gt=0, le=1e9)
    max_tokens: int | None = Field(None, gt=0, le=10**15)
    execute_timeout_seconds: float | None = Field(None, gt=0, le=86_400)

    def given(self) -> dict[str, Any]:
        """What was really said."""
        return self.model_dump(exclude_none=True)


class SubmitOptions(Heard):
    """How a batch is to be run."""

    settings: BatchSettings = Field(default_factory=BatchSettings)
    against: Name | None = Field(None, description="Compare with this earlier version: a label or a digest.")
    priority: int = Field(0, ge=-1_000, le=1_000, description="Higher goes first inside the team.")
    max_open: int | None = Field(None, ge=1, le=1_000_000, description="Most runs of the batch open at once.")


class SkillReference(Heard):
    """A skill that was uploaded before."""

    name: Name
    version: Name | None = Field(None, description="A label (v0) or the beginning of a digest; else the newest.")


class SubmitBody(SubmitOptions):
    """A submit for a skill that is here already."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "skill": {"name": "csv-summary", "version": "v0"},
                    "suite": {
                        "skill_name": "csv-summary",
                        "evals": [{"id": 1, "prompt": "Summarise orders.csv", "expectations": ["names the total"]}],
                    },
                    "settings": {"runs_per_eval": 3, "executor_model": "claude-sonnet-5-5"},
                }
            ]
        },
    )

    skill: SkillReference
    suite: dict[str, JsonValue] | None = Field(
        None, description="The suite in any dialect; else evals/evals.json of the uploaded archive."
    )


class RegradeOptions(Heard):
    """What is different when a batch is graded anew."""

    settings: BatchSettings = Field(
        default_factory=BatchSettings, description="Of the grading: judge_model, structural_gate, ..."
    )


class RegradeBody(RegradeOptions):
    """A regrade, with a suite of its own or with the batch's."""

    suite: dict[str, JsonValue] | None = Field(None, description="The suite in any dialect; cases match by their id.")


class FindingDocument(BaseModel):
    """One remark about one place of the suite."""

    level: Level
    path: str
    message: str
    code: str

    @classmethod
    def of(cls, finding: Finding) -> "FindingDocument":
        """As the reader of the suite said it."""
        return cls(level=finding.level, path=finding.path, message=finding.message, code=finding.code)


def estimate_document(estimate: Estimate | None) -> dict[str, JsonValue] | None:
    """Calls, tokens and cost as ranges."""
    if estimate is None:
        return None
    cost = estimate.cost_usd
    return {**asdict(estimate), "cost_usd": asdict(cost) if cost else None}


class AcceptedDocument(BaseModel):
    """A batch that will run."""

    model_config = _example(batch_id=_BATCH, runs=30, version="v0", iteration=1, is_new=True, findings=[])

    batch_id: str
    runs: int
    version: str = Field(description="The label of the skill version under test.")
    iteration: int
    is_new: bool = Field(description="False: the same key and content were submitted before.")
    findings: list[FindingDocument]
    estimate: dict[str, JsonValue] | None = Field(
        None, description="Calls, tokens and cost as ranges; null for given runs and for a repeated submit."
    )

    @classmethod
    def of(cls, accepted: Accepted) -> "AcceptedDocument":
        """As the service accepted it."""
        found = [FindingDocument.of(finding) for finding in accepted.findings]
        fields = {name: getattr(accepted, name) for name in ("batch_id", "runs", "version", "iteration", "is_new")}
        return cls(**fields, findings=found, estimate=estimate_document(accepted.estimate))


class PreviewDocument(BaseModel):
    """What a submit would find and take."""

    model_config = _example(is_acceptable=True, findings=[], estimate={"cases": 5, "runs": 30, "cost_usd": None})

    is_acceptable: bool
    findings: list[FindingDocument]
    estimate: dict[str, JsonValue] | None = Field(description="Calls, tokens and cost as ranges; cost null if unknown.")

    @classmethod
    def of(cls, preview: Preview) -> "PreviewDocument":
        """As the service saw it."""
        found = [FindingDocument.of(finding) for finding in preview.findings]
        taken = estimate_document(preview.estimate)
        return cls(is_acceptable=taken is not None, findings=found, estimate=taken)


class ProgressDocument(BaseModel):
    """How far a batch is."""

    model_config = _example(
        batch_id=_BATCH,
        state="running",
        total=30,
        settled=12,
        stages={"waiting": 8, "execute": 10, "settled": 12},
        outcomes={"scored": 12},
        eta_seconds=95.0,
    )

    batch_id: str
    state: BatchState
    total: int
    settled: int
    stages: dict[str, int]
    outcomes: dict[str, int]
    eta_seconds: float | None = Field(
        None, description="At the pace of the last ten minutes; null while paused, and while none ended in them."
    )

    @classmethod
    def of(cls, status: Status) -> "ProgressDocument":
        """From the counts."""
        progress = status.progress
        return cls(
            batch_id=status.batch.id,
            state=status.batch.state,
            total=progress.total,
            settled=progress.settled,
            stages=progress.stages,
            outcomes=progress.outcomes,
            eta_seconds=_eta(status),
        )


def _eta(status: Status) -> float | None:
    batch, progress = status.batch, status.progress
    if status.is_ended or batch.state is BatchState.PAUSED or not progress.recent.count:
        return None
    return round((progress.total - progress.settled) * progress.recent.seconds / progress.recent.count, 1)


class BatchSummary(BaseModel):
    """A batch in a list."""

    model_config = _example(
        id=_BATCH,
        state="finished",
        skill="csv-summary",
        version="v0",
        iteration=1,
        created_at=1795000000.0,
        started_at=1795000001.5,
        finished_at=1795000300.0,
        error=None,
    )

    id: str
    state: BatchState
    skill: str
    version: str
    iteration: int
    created_at: float
    started_at: float | None
    finished_at: float | None
    error: str | None = Field(description="Why the aggregate could not be built, if so.")

    @classmethod
    def of(cls, line: BatchLine) -> "BatchSummary":
        """From a line of the list."""
        return cls(**_summary(line.batch, line.skill, line.version))


class BatchDocument(BatchSummary):
    """A batch with its counts, cost and settings."""

    model_config = _example(
        id=_BATCH,
        state="running",
        skill="csv-summary",
        version="v0",
        iteration=1,
        created_at=1795000000.0,
        started_at=1795000001.5,
        finished_at=None,
        error=None,
        progress={
            "batch_id": _BATCH,
            "state": "running",
            "total": 30,
            "settled": 12,
            "stages": {"waiting": 18, "settled": 12},
            "outcomes": {"scored": 12},
            "eta_seconds": 95.0,
        },
        cost_usd=0.42,
        tokens=120000,
        files=[],
        settings={"runs_per_eval": {"value": 3, "source": "submit"}},
        regrade_of=None,
    )

    progress: ProgressDocument
    cost_usd: float = Field(description="What its model calls cost so far, where prices are known.")
    tokens: int
    files: list[str] = Field(description="The files of its aggregate, once it has ended.")
    settings: dict[str, JsonValue] = Field(description="name -> {value, source}: what is used and who said so.")
    regrade_of: str | None = Field(description="The batch whose artifacts it grades anew, if it is a regrade.")

    @classmethod
    def about(cls, status: Status, skill: tuple[str, str], spent: tuple[float, int]) -> "BatchDocument":
        """Everything about one batch."""
        batch = status.batch
        return cls(
            **_summary(batch, *skill),
            progress=ProgressDocument.of(status),
            cost_usd=round(spent[0], 6),
            tokens=spent[1],
            files=sorted(batch.aggregate or {}),
            settings=dict(batch.settings),
            regrade_of=batch.regrade_of,
        )


def _summary(batch: BatchRow, skill: str, version: str) -> dict[str, Any]:
    names = ("id", "state", "iteration", "created_at", "started_at", "finished_at", "error")
    return {**{name: getattr(batch, name) for name in names}, "skill": skill, "version": version}


class BatchPage(BaseModel):
    """A page of batches."""

    model_config = _example(batches=[], next_before=None)

    batches: list[BatchSummary]
    next_before: str | None = Field(description="Ask with before=<this> for the next page; null at the end.")


class RetryBody(Heard):
    """Which runs are to go on, and with which budget."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"outcomes": ["infra_error"]}]})

    outcomes: list[Outcome] | None = Field(None, min_length=1, description="Else all that ended without a score.")
    max_cost_usd: float | None = Field(None, gt=0, description="What the batch may cost from now on; else as before.")
    max_tokens: int | None = Field(None, gt=0, description="What the batch may use from now on; else as before.")


class Retried(BaseModel):
    """How many runs go on."""

    model_config = _example(runs=3)

    runs: int


class GateDocument(BaseModel):
    """One gate, decided or not."""

    name: str
    state: GateState
    sentence: str = Field(description="Its numbers in words.")


class GatesDocument(BaseModel):
    """What gates say of a batch."""

    model_config = _example(
        results=[{"name": "--fail-under 0.8", "state": "passed", "sentence": "overall score is 0.910 over 5 cases"}],
        exit_code=0,
        is_interim=False,
        summary="### csv-summary: helps",
    )

    results: list[GateDocument]
    exit_code: int = Field(description="0 every gate passed, 1 one failed, 2 none failed but one is undecided.")
    is_interim: bool = Field(description="Whether runs are still open; then every gate is undecided.")
    summary: str = Field(description="Markdown for a pull request.")

    @classmethod
    def of(cls, gated: Gated) -> "GatesDocument":
        """As the service says it."""
        results = [GateDocument(name=one.name, state=one.state, sentence=one.sentence) for one in gated.report.results]
        code = gated.report.exit_code
        return cls(results=results, exit_code=code, is_interim=gated.is_interim, summary=gated.summary)


_RUN: dict[str, Any] = {
    "id": 17,
    "batch_id": _BATCH,
    "position": 0,
    "case": "1",
    "configuration": "with_skill",
    "role": "treatment",
    "run_number": 1,
    "stage": "settled",
    "outcome": "scored",
    "error": None,
    "attempts": 1,
    "worker": "host:4242",
    "facts": {"tokens": 1200},
    "started_at": 1795000001.5,
    "settled_at": 1795000020.0,
}


class RunDocument(BaseModel):
    """A run in a list."""

    model_config = _example(**_RUN)

    id: int
    batch_id: str
    position: int
    case: str
    configuration: str
    role: Role | None = Field(description="Null: its configuration takes no part in the comparison.")
    run_number: int
    stage: Stage
    outcome: Outcome | None
    error: str | None
    attempts: int
    worker: str | None
    facts: dict[str, JsonValue] | None
    started_at: float | None
    settled_at: float | None

    @classmethod
    def of(cls, run: RunRow) -> "RunDocument":
        """From its row."""
        return cls(**_run(run))


def _run(run: RunRow) -> dict[str, Any]:
    fields = {name: getattr(run, name) for name in RunDocument.model_fields if name != "case"}
    return {**fields, "case": run.case_label}


class RunPage(BaseModel):
    """A page of runs."""

    model_config = _example(runs=[], next_after=None)

    runs: list[RunDocument]
    next_after: int | None = Field(description="Ask with after=<this> for the next page; null at the end.")


class AttemptDocument(BaseModel):
    """One attempt at one stage."""

    stage: str
    worker: str | None
    started_at: float | None
    ended_at: float
    result: str
    error: str | None


class ArtifactDocument(BaseModel):
    """One file of a run."""

    model_config = _example(name="outputs/report.md", size=812, sha256="0" * 64)

    name: str
    size: int
    sha256: str

    @classmethod
    def of(cls, name: str, blob: Blob) -> "ArtifactDocument":
        """From its row."""
        return cls(name=name, size=blob.size, sha256=blob.sha256)


class ArtifactList(BaseModel):
    """The files of a run."""

    model_config = _example(artifacts=[{"name": "transcript.md", "size": 812, "sha256": "0" * 64}])

    artifacts: list[ArtifactDocument]


class ReviewDocument(BaseModel):
    """What one person says about one run."""

    model_config = _example(author="kim", feedback="the total is missing", updated_at=1795000400.0)

    author: str
    feedback: str
    updated_at: float


class ReviewBody(Heard):
    """What somebody says about a run."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"author": "kim", "feedback": "the total is missing"}]}
    )

    author: Name
    feedback: Text


class RunStory(RunDocument):
    """A run with everything that happened to it."""

    model_config = _example(
        **_RUN,
        story=[
            {
                "stage": "execute",
                "worker": "host:4242",
                "started_at": 1795000001.5,
                "ended_at": 1795000012.0,
                "result": "done",
                "error": None,
            }
        ],
        artifacts=[{"name": "transcript.md", "size": 812, "sha256": "0" * 64}],
        reviews=[{"author": "kim", "feedback": "the total is missing", "updated_at": 1795000400.0}],
    )

    story: list[AttemptDocument]
    artifacts: list[ArtifactDocument]
    reviews: list[ReviewDocument]

    @classmethod
    def about(
        cls, run: RunRow, story: list[AttemptDocument], artifacts: Mapping[str, Blob], reviews: list[ReviewDocument]
    ) -> "RunStory":
        """Everything about one run."""
        files = [ArtifactDocument.of(name, blob) for name, blob in artifacts.items()]
        return cls(**_run(run), story=story, artifacts=files, reviews=reviews)


class SkillDocument(BaseModel):
    """A skill in a list."""

    model_config = _example(name="csv-summary", versions=2, newest_at=1795000000.0)

    name: str
    versions: int
    newest_at: float


class SkillPage(BaseModel):
    """A page of skills."""

    model_config = _example(skills=[], next_after=None)

    skills: list[SkillDocument]
    next_after: str | None


class VersionDocument(BaseModel):
    """One version of a skill."""

    model_config = _example(
        id=_BATCH,
        skill="csv-summary",
        version="v0",
        digest="0" * 64,
        git_hash=None,
        description="Summarises CSV files.",
        files=["SKILL.md"],
        created_at=1795000000.0,
    )

    id: str
    skill: str
    version: str
    digest: str
    git_hash: str | None
    description: str
    files: list[str]
    created_at: float

    @classmethod
    def of(cls, row: SkillVersionRow) -> "VersionDocument":
        """From its row."""
        same = {name: getattr(row, name) for name in ("id", "skill", "digest", "git_hash", "description", "created_at")}
        return cls(**same, version=row.label, files=sorted(row.files))


class VersionList(BaseModel):
    """All versions of a skill, oldest first."""

    model_config = _example(versions=[])

    versions: list[VersionDocument]


class WebhookBody(Heard):
    """Where a team wants to be told that a batch ended."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"url": "https://ci.example/assay"}]})

    url: Annotated[str, Field(min_length=8, max_length=2_000, pattern=_WEB_ADDRESS)]


class WebhookDocument(BaseModel):
    """A webhook."""

    model_config = _example(id=_BATCH, url="https://ci.example/assay", created_at=1795000000.0)

    id: str
    url: str
    created_at: float


class NewWebhook(WebhookDocument):
    """A webhook with the secret that signs what it gets; shown this once."""

    model_config = _example(
        id=_BATCH,
        url="https://ci.example/assay",
        created_at=1795000000.0,
        secret="whsec_Zm9yIGV4YW1wbGU",  # noqa: S106  an example
    )

    secret: str


class WebhookList(BaseModel):
    """A team's webhooks."""

    model_config = _example(webhooks=[])

    webhooks: list[WebhookDocument]


class DeliveryDocument(BaseModel):
    """What became of one delivery."""

    id: str
    batch_id: str
    state: str
    attempts: int
    error: str | None
    created_at: float
    delivered_at: float | None


class DeliveryList(BaseModel):
    """The newest deliveries of a webhook."""

    model_config = _example(deliveries=[])

    deliveries: list[DeliveryDocument]


class Health(BaseModel):
    """Whether the process, or what it needs, is well."""

    model_config = _example(status="ok", version="0.1.0")

    status: str
    version: str


class Readiness(BaseModel):
    """Each part the API needs: ok, or what is wrong with it."""

    model_config = _example(database="ok", migrations="ok", broker="ok")

    database: str
    migrations: str
    broker: str


class SchemaList(BaseModel):
    """Which documents are written in which dialects."""

    model_config = _example(schemas={"evals": ["skill_evaluator", "skill_creator", "cases"]})

    schemas: dict[str, list[str]]
