"""What is kept of the runs that have gone by: a tally per configuration and per case and configuration."""

from collections import Counter
from collections.abc import Iterator

from schemas.base import CaseId
from schemas.states import Outcome
from service.aggregation.items import ItemTally, note_decisions, note_rejudged
from service.aggregation.moments import Moments
from service.aggregation.noise import NoiseTally
from service.aggregation.records import COUNTED, CaseFacts, RunRecord
from service.aggregation.scores import RunScores, criteria_summary, time_seconds, total_tokens

SCORES = ("pass_rate", "rubric_normalized", "overall_efficiency")  # in 0-1, better is more
COSTS = ("time_seconds", "tokens", "cost_usd")  # compared as ratios
OTHER = "other"  # a judge error without a word for it, as of a model that refuses the request
MOST_CONDITIONS = 50  # of a kind; texts of a folder's files must not grow without end
CRITERIA = ("overall_score", "required_score")  # the cases dialect, 1-5


class Tally:
    """Counts and moments of some runs of one configuration."""

    __slots__ = ("dimensions", "full_passes", "judge_errors", "judged_full", "metrics", "outcomes", "skill_used")

    def __init__(self) -> None:
        self.outcomes: Counter[Outcome] = Counter()
        self.judge_errors: Counter[str] = Counter()  # by reason
        self.skill_used: Counter[bool | None] = Counter()
        self.metrics: dict[str, Moments] = {}
        self.dimensions: dict[str, Moments] = {}
        self.full_passes = 0
        self.judged_full = 0

    @property
    def counted(self) -> int:
        """Runs that enter means."""
        return sum(self.outcomes[outcome] for outcome in COUNTED)

    @property
    def runs(self) -> int:
        """All runs seen, however they ended."""
        return self.outcomes.total()

    def mean(self, metric: str) -> float | None:
        """The mean of a score, cost or dimension; None when no run has it."""
        moments = self.metrics.get(metric) or self.dimensions.get(metric)
        return moments.mean if moments else None

    def add(self, record: RunRecord, scores: RunScores | None) -> None:
        """Take one run in."""
        self.outcomes[record.outcome] += 1
        self.skill_used[record.skill_used] += 1
        if record.outcome is Outcome.JUDGE_ERROR:
            self.judge_errors[record.judge_failed or OTHER] += 1
        if scores is None:
            return
        for name, value in _measures(record, scores):
            self.metrics.setdefault(name, Moments()).add(value)
        for name, value in scores.dimensions.items():
            self.dimensions.setdefault(name, Moments()).add(value)
        if scores.is_full_pass is not None:
            self.judged_full += 1
            self.full_passes += scores.is_full_pass


def _measures(record: RunRecord, scores: RunScores) -> Iterator[tuple[str, float]]:
    criteria = criteria_summary(scores.decisions)
    values = {
        "pass_rate": scores.pass_rate,
        "rubric_normalized": scores.rubric_normalized,
        "overall_efficiency": scores.overall_efficiency,
        "time_seconds": time_seconds(record),
        "tokens": total_tokens(record),
        "cost_usd": record.cost_usd,
        "overall_score": criteria.overall_score if criteria else None,
        "required_score": criteria.required_score if criteria else None,
    }
    return ((name, value) for name, value in values.items() if value is not None)


class CaseTally:
    """One case over all its runs."""

    __slots__ = ("arms", "facts", "items", "scores", "unlisted_items")

    def __init__(self, facts: CaseFacts) -> None:
        self.facts = facts
        self.arms: dict[str, Tally] = {}
        self.items: dict[tuple[str, str], ItemTally] = {}
        self.scores: dict[str, dict[str, Counter[int]]] = {}  # dimension -> configuration -> score -> runs
        self.unlisted_items = 0

    def add(self, record: RunRecord, scores: RunScores | None) -> None:
        """Take one run of this case in."""
        self.arms.setdefault(record.configuration, Tally()).add(record, scores)
        if scores is None:
            return
        self.unlisted_items += note_decisions(self.items, record.configuration, scores.judged)
        note_rejudged(self.items, record)
        for name, value in scores.dimensions.items():
            by_arm = self.scores.setdefault(name, {})
            by_arm.setdefault(record.configuration, Counter())[round(value)] += 1

    def tally(self, configuration: str | None) -> Tally | None:
        """One arm of the case, if it has run."""
        return self.arms.get(configuration) if configuration is not None else None


class Tallies:
    """Everything kept of a batch; grows with cases, not with runs."""

    def __init__(self) -> None:
        self.cases: dict[CaseId, CaseTally] = {}
        self.configurations: dict[str, Tally] = {}
        self.simulated = 0
        self.spent_usd: float | None = None
        self.noise = NoiseTally()
        self.judge_prompts: set[str] = set()  # versions of the prompts that judged
        self.unpriced = 0  # runs whose tokens were measured and whose model has no known price
        self.sandboxes: set[str] = set()  # tiers that runs were in

    def add(self, record: RunRecord, scores: RunScores | None) -> None:
        """Take one run in."""
        self.cases.setdefault(record.case.id, CaseTally(record.case)).add(record, scores)
        self.configurations.setdefault(record.configuration, Tally()).add(record, scores)
        self.simulated += record.simulated
        self.noise.add(record)
        is_measured = record.tokens is not None and record.tokens.output is not None
        self.unpriced += is_measured and record.cost_usd is None and not record.simulated
        self._note_conditions(record)
        if record.cost_usd is not None:
            self.spent_usd = (self.spent_usd or 0.0) + record.cost_usd

    def _note_conditions(self, record: RunRecord) -> None:
        """Under what conditions the run was made and judged, as far as it tells."""
        judge = record.grading.extra.get("judge") if record.grading else None
        prompt = judge.get("prompt_version") if isinstance(judge, dict) else None
        for value, known in ((prompt, self.judge_prompts), (record.sandbox, self.sandboxes)):
            if isinstance(value, str) and len(known) < MOST_CONDITIONS:
                known.add(value)
