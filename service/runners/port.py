"""What we ask of a way to execute a case.

The workspace is the agent's working folder: the case's input files are staged at its top, and every file that is
new or changed there when the runner returns is an output of the run. Runners leave nothing else in it: transcript,
metrics and notes are returned, not written.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import quote

from pydantic import JsonValue

from schemas.metrics import Metrics


@dataclass(frozen=True)
class SkillFolder:
    """A snapshot of a skill on this machine, to be shown read-only to the agent."""

    folder: Path
    name: str  # from the front matter of SKILL.md, else the folder's name
    description: str  # from the front matter of SKILL.md, "" if it has none
    digest: str


@dataclass(frozen=True)
class Usage:
    """Tokens by kind; None where nobody counted."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None

    @property
    def total(self) -> int | None:
        """All kinds together; None when nothing was counted."""
        kinds = [self.input_tokens, self.output_tokens, self.cache_read_tokens, self.cache_write_tokens]
        counted = [tokens for tokens in kinds if tokens is not None]
        return sum(counted) if counted else None


@dataclass(frozen=True)
class Assignment:
    """One case in one configuration, for one runner."""

    run_id: int
    batch_id: str
    case_id: int | str
    configuration: str
    run_number: int
    prompt: str
    workspace: Path  # exists, holds the staged inputs, is this run's alone
    inputs: tuple[str, ...]  # names of the staged inputs, relative to the workspace
    skill: SkillFolder | None  # None in an arm without a skill
    model: str | None
    timeout_seconds: float
    command: tuple[str, ...] = ()  # for the command runner
    canary: str | None = None  # planted in this arm's skill; not for the agent
    other_canary: str | None = None  # planted in the other arm's skill: wherever it shows up, the run is contaminated
    team: str = "default"
    is_cancelled: Callable[[], bool] = field(default=lambda: False)  # ask at safe points, then stop

    @property
    def label(self) -> str:
        """Which run asks, for gateways and the simulator: the same in every batch, and safe in a header."""
        return f"{quote(str(self.case_id), safe='')[:200]}/{self.configuration}/{self.run_number}"


@dataclass(frozen=True)
class Execution:
    """What came out of one execution, besides the files in the workspace."""

    transcript: str  # markdown, starts with "## Eval Prompt"
    metrics: Metrics
    seconds: float  # time the agent worked
    transcript_events: bytes | None = None  # JSON lines
    user_notes: str | None = None
    usage: Usage = Usage()
    cost_usd: float | None = None
    model: str | None = None
    simulated: bool = False
    skill_used: bool | None = None  # None: this runner cannot tell
    skill_files_read: tuple[str, ...] = ()
    sandbox_tier: str | None = None
    details: Mapping[str, JsonValue] = field(default_factory=dict)  # runner's own facts, kept in execution.json


class Runner(Protocol):
    """Executes one case. Raises StageFailed for a named outcome, Unavailable for "again later"."""

    name: str

    def run(self, assignment: Assignment) -> Execution:
        """Work until the agent is done; never longer than the assignment's deadline."""
