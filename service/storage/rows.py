"""What the store hands out: frozen rows, so that no caller holds a live database object."""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from schemas.states import BatchState, Outcome, Role, Stage

# How the database calls the role of a configuration that takes no part in the comparison; sorts behind the others.
ASIDE = "aside"
# The artifacts that say what was decided about a run, by the stage that makes them; all others are what it left.
DECISIONS = {"structural.json": Stage.CHECK, "grading.json": Stage.JUDGE, "grading-again.json": Stage.JUDGE}
# The fence of a stage's first claim when nothing ever went wrong: a higher one means that something was saved before.
# A stage that is passed over is counted as well.
FIRST_FENCE = {Stage.EXECUTE: 1, Stage.CHECK: 2, Stage.JUDGE: 3}

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"


def new_id() -> str:
    """26 characters that sort by time: 48 bits of milliseconds, 80 of chance."""
    number = (int(time.time() * 1000) << 80) | int.from_bytes(os.urandom(10), "big")
    return "".join(_ALPHABET[(number >> shift) & 31] for shift in range(125, -1, -5))


@dataclass(frozen=True)
class Claim:
    """A run's stage, held by one worker while its fence is current."""

    run_id: int
    batch_id: str
    stage: Stage
    fence: int
    attempt: int  # 1 for the first try of this stage
    position: int
    case_position: int
    case_label: str
    configuration: str
    role: Role | None  # None: its configuration takes no part in the comparison
    run_number: int
    skill_version_id: str | None
    facts: dict[str, Any]
    claimed_at: float
    worker: str


@dataclass(frozen=True)
class Message:
    """One nudge: the id that counts, and words for people who watch the queues."""

    stage: str  # a Stage, "aggregate" or "compare"
    id: int | str
    label: str


@dataclass(frozen=True)
class Blob:
    """Some bytes in the artifact store."""

    sha256: str
    size: int


@dataclass(frozen=True)
class Saved:
    """What became of a run that was saved."""

    message: Message | None  # the next stage's nudge
    settled: bool


@dataclass(frozen=True)
class TeamRow:
    """A team."""

    id: str
    name: str
    weight: float
    max_open: int | None


@dataclass(frozen=True)
class SkillVersionRow:
    """One snapshot of a skill."""

    id: str
    team_id: str
    skill: str
    number: int
    digest: str
    parent_id: str | None
    git_hash: str | None
    description: str
    files: dict[str, dict[str, Any]]
    created_at: float

    @property
    def label(self) -> str:
        """v0, v1, ..."""
        return f"v{self.number}"


@dataclass(frozen=True)
class BatchRow:
    """One submission."""

    id: str
    team_id: str
    suite_id: str
    skill_version_id: str
    control_version_id: str | None
    iteration: int
    state: BatchState
    settings: dict[str, dict[str, Any]]
    inputs: dict[str, list[dict[str, Any]]]
    priority: int
    max_open: int | None
    cancelled_at: float | None
    aggregate: dict[str, dict[str, Any]] | None
    error: str | None
    created_at: float
    started_at: float | None
    finished_at: float | None
    regrade_of: str | None = None

    def setting(self, name: str) -> Any:
        """What this batch uses, whoever said so."""
        return self.settings[name]["value"]


@dataclass(frozen=True)
class RunRow:
    """One run as lists and reports show it."""

    id: int
    batch_id: str
    position: int
    case_position: int
    case_label: str
    configuration: str
    role: Role | None  # None: its configuration takes no part in the comparison
    run_number: int
    skill_version_id: str | None
    stage: Stage
    entry: Stage
    outcome: Outcome | None
    error: str | None
    attempts: int
    worker: str | None
    facts: dict[str, Any] | None
    started_at: float | None
    settled_at: float | None


@dataclass(frozen=True)
class GivenReview:
    """What somebody said about a run before it came here."""

    author: str
    feedback: str
    said_at: float | None = None  # None: not known


@dataclass(frozen=True)
class Given:
    """What a run brings along that is never executed here; with an outcome it is settled from the start."""

    files: Mapping[str, Blob]
    facts: dict[str, Any]
    outcome: Outcome | None = None
    error: str | None = None
    was_executed: bool = True  # False: nothing came out that could be graded, not even by a retry
    reviews: tuple[GivenReview, ...] = ()


@dataclass(frozen=True)
class NewRun:
    """A run that a submit plans."""

    position: int
    case_position: int
    case_label: str
    configuration: str
    role: Role | None  # None: its configuration takes no part in the comparison
    run_number: int
    skill_version_id: str | None
    given: Given | None = None  # of all runs of a batch, or of none


@dataclass(frozen=True)
class Recent:
    """Runs that work ended lately, and since when the first of them was at work, looking back a while at most."""

    count: int = 0
    seconds: float = 0.0


@dataclass(frozen=True)
class Progress:
    """How far a batch is: counts by stage and by outcome."""

    stages: dict[str, int] = field(default_factory=dict)
    outcomes: dict[str, int] = field(default_factory=dict)
    recent: Recent = field(default=Recent(), compare=False)  # grows older by itself: nothing new to tell anybody

    @property
    def total(self) -> int:
        """All runs of the batch."""
        return sum(self.stages.values())

    @property
    def settled(self) -> int:
        """Runs that ended."""
        return self.stages.get(Stage.SETTLED, 0)
