"""What a run left for a comparison, and which runs make a pair."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from schemas.kinds import Dialect
from schemas.states import Outcome
from schemas.suite import Case
from service.judging.evidence import decoded, how
from service.judging.material import OutputFile
from service.judging.media import Shown
from service.storage.rows import RunRow

CHALLENGER, CHAMPION = "challenger", "champion"
SIDES = (CHALLENGER, CHAMPION)
# Runs whose execution came to something; whatever happened to their grading does not matter here.
LEFT_SOMETHING = (Outcome.SCORED, Outcome.GATED, Outcome.UNGRADED, Outcome.JUDGE_ERROR)


@dataclass(frozen=True)
class Result:
    """What one run left: its files, or the agent's last words if it wrote none."""

    outputs: tuple[OutputFile, ...] = ()
    answer: str | None = None

    @cached_property
    def texts(self) -> tuple[tuple[OutputFile, str], ...]:
        """The files that are text."""
        return tuple((file, decoded(file)) for file in self.outputs if how(file) is Shown.TEXT)

    @property
    def length(self) -> int:
        """Characters of text."""
        return sum(len(text) for _, text in self.texts) + len(self.answer or "")


def last_words(transcript: str | None) -> str | None:
    """The agent's closing answer in a transcript of ours."""
    _, found, rest = (transcript or "").rpartition("\n## Final Result\n")
    words = rest.partition("\n## Issues\n")[0].strip()
    return words if found and words else None


@dataclass(frozen=True)
class Pair:
    """The runs of both sides for one case and run number."""

    position: int  # of the case in the suite
    case: Case
    run_number: int
    runs: Mapping[str, int]  # side -> run id


@dataclass(frozen=True)
class Excluded:
    """A run that cannot take part, and with it its pair."""

    case: Case
    run_number: int
    side: str
    reason: str


@dataclass
class Pairing:
    """All pairs of two sides, and what was left out."""

    pairs: list[Pair] = field(default_factory=list)
    excluded: list[Excluded] = field(default_factory=list)

    def add(self, position: int, case: Case, runs: Mapping[str, list[RunRow]]) -> None:
        """Pair the runs of one case by their numbers; a number that only one side has is no pair and no loss."""
        by_number = {side: {run.run_number: run for run in found} for side, found in runs.items()}
        for number in sorted(set(by_number[CHALLENGER]) & set(by_number[CHAMPION])):
            both = {side: by_number[side][number] for side in SIDES}
            missing = list(_missing(case, both))
            self.excluded += missing
            if not missing:
                self.pairs.append(Pair(position, case, number, {side: run.id for side, run in both.items()}))


def _missing(case: Case, both: Mapping[str, RunRow]) -> Iterator[Excluded]:
    for side, run in both.items():
        if run.outcome not in LEFT_SOMETHING:
            reason = f"{run.outcome or run.stage}: {run.error}" if run.error else str(run.outcome or run.stage)
            yield Excluded(case, run.run_number, side, reason)


def form_of(dialect: str, cases: list[Case]) -> Dialect:
    """In whose form a comparison is written: only two dialects have one."""
    if dialect == Dialect.CASES:
        return Dialect.CASES
    is_own = dialect in (Dialect.SKILL_CREATOR, Dialect.SKILL_EVALUATOR)
    return Dialect.CASES if not is_own and any(case.criteria for case in cases) else Dialect.SKILL_CREATOR
