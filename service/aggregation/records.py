"""What the aggregator is given: one record per run, and the plan of the batch they belong to."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from schemas.base import CaseId
from schemas.grading import Grading
from schemas.metrics import Metrics
from schemas.states import Outcome, Role
from schemas.structural import Structural
from schemas.timing import Timing

COUNTED = frozenset({Outcome.SCORED, Outcome.GATED})  # the outcomes that enter means


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """What the aggregator must know of a case; one object is shared by all its runs."""

    id: CaseId
    name: str | None = None
    prompt: str | None = None
    statements: tuple[str, ...] = ()  # what a judge is asked; a gated run failed them all
    required: frozenset[str] = frozenset()  # the criteria without which the case fails
    weights: Mapping[str, float] = field(default_factory=dict)  # dimension -> weight; empty when the suite is not known

    @property
    def label(self) -> str:
        """How reports call the case."""
        return self.name or f"case {self.id}"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of one run by kind; None where only the total is known."""

    total: int
    input: int | None = None
    output: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One settled run with everything that was decided about it."""

    case: CaseFacts
    configuration: str
    role: Role | None
    run_number: int
    outcome: Outcome
    structural: Structural | None = None
    grading: Grading | None = None
    rejudged: tuple[Grading, ...] = ()  # further judgements of the same outputs, to measure the judge
    rejudge_failed: bool = False  # it was to be judged again, and that gave no usable answer
    metrics: Metrics | None = None
    timing: Timing | None = None
    tokens: Tokens | None = None
    cost_usd: float | None = None
    skill_used: bool | None = None  # None: not known
    simulated: bool = False
    sandbox: str | None = None  # the tier it ran in
    reason: str | None = None  # why the run has no score
    judge_failed: str | None = None  # of a judge_error, in one word: malformed, ids, control, ...
    notes: tuple[str, ...] = ()
    paths: Mapping[str, str] = field(default_factory=dict)  # where its artifacts are, by name


@dataclass(frozen=True, slots=True)
class Arm:
    """A configuration and what it is in the comparison; None takes no part in it."""

    configuration: str
    role: Role | None


@dataclass(frozen=True, slots=True)
class Options:
    """How numbers are weighed; all of it is written into the benchmark."""

    margin: float = 0.05  # a difference smaller than this does not matter
    pass_weight: float = 0.5
    rubric_weight: float = 0.5
    metric: str | None = None  # the metric of the verdict; None chooses by what was measured


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """What was meant to run, with what, and how it is to be reported."""

    skill_name: str
    timestamp: str
    arms: tuple[Arm, ...]
    skill_path: str | None = None
    executor_model: str | None = None
    analyzer_model: str | None = None
    cases: tuple[CaseFacts, ...] | None = None  # None: whatever the records show
    runs_per_configuration: int | None = None  # None: the most any case and arm has
    provenance: Mapping[str, JsonValue] = field(default_factory=dict)
    iteration: int = 1
    is_interim: bool = False
    options: Options = Options()

    def of_role(self, role: Role) -> str | None:
        """The configuration that plays this role in the comparison; the first if several do."""
        return next((arm.configuration for arm in self.arms if arm.role is role), None)

    @property
    def treatment(self) -> str | None:
        """The configuration under test."""
        return self.of_role(Role.TREATMENT)

    @property
    def control(self) -> str | None:
        """The configuration it is compared with."""
        return self.of_role(Role.CONTROL)
