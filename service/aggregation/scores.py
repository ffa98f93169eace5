"""One run in numbers: the formulas, once."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from schemas.base import CaseId, Number
from schemas.grading import CriterionResult, Grading
from schemas.states import Outcome
from schemas.structural import Summary
from service.aggregation.records import Options, RunRecord

PASSING_SCORE = 3  # a criterion scored this or more is passed
TOP_SCORE = 5
NOT_JUDGED = "not judged: a critical structural expectation failed"


class Kind(StrEnum):
    """What sort of thing was decided."""

    STRUCTURAL = "structural"
    STATEMENT = "statement"
    CRITERION = "criterion"
    DIMENSION = "dimension"


@dataclass(frozen=True, slots=True)
class Decision:
    """One yes/no thing of one run; `passed` is None when it was not decided."""

    kind: Kind
    text: str
    passed: bool | None
    evidence: str | None = None
    id: CaseId | None = None
    score: Number | None = None
    critical: bool | None = None
    required: bool | None = None

    @property
    def is_judged(self) -> bool:
        """Whether somebody looked; a gated run is not judged, and its files say so wherever they are read."""
        return self.evidence != NOT_JUDGED

    @property
    def key(self) -> tuple[Kind, str]:
        """What makes it the same thing in another run of the case."""
        return self.kind, f"{self.id}: {self.text}" if self.id is not None else self.text


@dataclass(frozen=True, slots=True)
class RunScores:
    """What one counted run contributes; None where it has no such number."""

    passed: int
    total: int
    pass_rate: float | None
    rubric_normalized: float | None
    overall_efficiency: float | None
    is_full_pass: bool | None
    decisions: tuple[Decision, ...]
    dimensions: Mapping[str, float] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def judged(self) -> tuple[Decision, ...]:
        """What somebody looked at: it alone says something about a check."""
        return tuple(decision for decision in self.decisions if decision.is_judged)


def score(record: RunRecord, options: Options) -> RunScores:
    """The numbers of a counted run."""
    decisions = tuple(decisions_of(record))
    passed, total, warnings = _counts(record, decisions)
    pass_rate = passed / total if total else None
    dimensions = dimension_scores(record.grading)
    rubric, remarks = _rubric(record, dimensions)
    return RunScores(
        passed,
        total,
        pass_rate,
        rubric,
        efficiency(pass_rate, rubric, options),
        _is_full_pass(decisions, passed, total),
        decisions,
        dimensions,
        (*warnings, *remarks),
    )


def decisions_of(record: RunRecord) -> Iterator[Decision]:
    """Everything yes/no that was asked of a run: structural first, then statements, then criteria."""
    known: set[str] = set()
    for check in record.structural.expectations if record.structural else ():
        known |= {check.text, check.id or check.text}
        yield Decision(Kind.STRUCTURAL, check.text, check.passed, check.evidence, check.id, critical=check.critical)
    if record.grading is not None:
        yield from _judged(record.grading, known, record.case.required)
    elif record.outcome is Outcome.GATED:
        yield from (Decision(Kind.STATEMENT, text, False, NOT_JUDGED) for text in record.case.statements)


def _judged(grading: Grading, known: set[str], required: frozenset[str]) -> Iterator[Decision]:
    for statement in grading.expectations or ():
        # Some graders repeat the structural expectations; what code decided is not counted twice.
        if statement.text not in known and (statement.id is None or str(statement.id) not in known):
            yield Decision(Kind.STATEMENT, statement.text, statement.passed, statement.evidence, statement.id)
    for result in grading.results or ():
        is_required = result.criterion in required if required else None
        yield Decision(
            Kind.CRITERION,
            result.criterion,
            is_passed(result),
            result.reasoning,
            score=result.score,
            required=is_required,
        )


def is_passed(result: CriterionResult) -> bool | None:
    """A criterion passes at 3; a file without scores says so itself."""
    return result.passed if result.score is None else result.score >= PASSING_SCORE


def _counts(record: RunRecord, decisions: tuple[Decision, ...]) -> tuple[int, int, tuple[str, ...]]:
    """Passed and total, recounted; only a grading that lists nothing is taken at its summary's word."""
    decided = [decision.passed for decision in decisions if decision.passed is not None]
    given = record.grading.summary if record.grading else None
    listed = bool(record.grading and (record.grading.expectations or record.grading.results))
    if given is None or (given.total is None and given.pass_rate is None):
        return sum(decided), len(decided), ()
    if not listed and given.passed is not None and given.total is not None:
        return sum(decided) + given.passed, len(decided) + given.total, ()
    return sum(decided), len(decided), _contradiction(given, decisions)


def _contradiction(given: Summary, decisions: tuple[Decision, ...]) -> tuple[str, ...]:
    """A remark when a grading's own summary does not follow from what it lists."""
    judged = [d.passed for d in decisions if d.kind is not Kind.STRUCTURAL and d.passed is not None]
    everything = [d.passed for d in decisions if d.passed is not None]
    possible = {(sum(part), len(part)) for part in (judged, everything)}
    if given.passed is None or given.total is None or (given.passed, given.total) in possible:
        return ()
    counted = f"{sum(judged)} of {len(judged)}"
    return (f"the grading's summary says {given.passed} of {given.total} passed, its list shows {counted}",)


def dimension_scores(grading: Grading | None) -> dict[str, float]:
    """The rubric scores that were given, by dimension."""
    scores = (grading.rubric_scores if grading else None) or ()
    return {dimension.name: dimension.score for dimension in scores if dimension.score is not None}


def weighted_mean(scores: Mapping[str, float], weights: Mapping[str, float]) -> float | None:
    """sum(score * weight) / sum(weight) with the suite's weights; None when one of its dimensions has no score."""
    weights = weights or dict.fromkeys(scores, 1.0)
    weight = sum(weights.values())
    if not scores or weight <= 0 or not weights.keys() <= scores.keys():
        return None
    return sum(scores[name] * share for name, share in weights.items()) / weight


def _rubric(record: RunRecord, scores: Mapping[str, float]) -> tuple[float | None, tuple[str, ...]]:
    """The rubric in 0-1, and what was odd about it."""
    if record.outcome is Outcome.GATED:
        return (0.0 if record.case.weights else None), ()
    given = record.grading.rubric_summary if record.grading else None
    if not record.case.weights and given is not None and given.normalized is not None:
        return float(given.normalized), ()  # without the suite the grader's own weighting is all there is
    mean = weighted_mean(scores, record.case.weights)
    if mean is None and scores:
        missing = ", ".join(sorted(record.case.weights.keys() - scores.keys()))
        return None, (f"the rubric has no score for {missing}; the run counts without its rubric",)
    return (None if mean is None else mean / TOP_SCORE), ()


def efficiency(pass_rate: float | None, rubric: float | None, options: Options) -> float | None:
    """Both parts weighed together; one alone when the other is absent."""
    if pass_rate is None or rubric is None:
        return rubric if pass_rate is None else pass_rate
    whole = options.pass_weight + options.rubric_weight
    return (options.pass_weight * pass_rate + options.rubric_weight * rubric) / whole


def _is_full_pass(decisions: tuple[Decision, ...], passed: int, total: int) -> bool | None:
    """Whether the run did all it must: the required criteria where a suite names them, else everything."""
    required = [decision.passed for decision in decisions if decision.required]
    others = [d.passed for d in decisions if d.kind is not Kind.CRITERION]
    if required:
        return all(required) and all(others)
    return passed == total if total else None


@dataclass(frozen=True, slots=True)
class CriteriaSummary:
    """A cases-dialect grading in three figures."""

    overall_score: float
    required_score: float | None
    overall: str  # pass or fail


def criteria_summary(decisions: tuple[Decision, ...]) -> CriteriaSummary | None:
    """Means with one decimal and pass iff every required criterion passed; None without scored criteria."""
    criteria = [d for d in decisions if d.kind is Kind.CRITERION and d.score is not None]
    if not criteria:
        return None
    required = [d for d in criteria if d.required]
    return CriteriaSummary(
        _one_decimal([d.score for d in criteria if d.score is not None]),
        _one_decimal([d.score for d in required if d.score is not None]) if required else None,
        "pass" if all(d.passed for d in required) else "fail",
    )


def _one_decimal(scores: list[Number]) -> float:
    return round(sum(scores) / len(scores), 1)


def time_seconds(record: RunRecord) -> float | None:
    """How long the executor took; the grader's time is not the skill's."""
    for timing in (record.timing, record.grading.timing if record.grading else None):
        if timing is None:
            continue
        for value in (timing.executor_duration_seconds, timing.total_duration_seconds):
            if value is not None:
                return value
        if timing.duration_ms is not None:
            return timing.duration_ms / 1000
    return None


def total_tokens(record: RunRecord) -> int | None:
    """Tokens, never characters."""
    if record.tokens is not None:
        return record.tokens.total
    return record.timing.total_tokens if record.timing else None


def tool_calls(record: RunRecord) -> int | None:
    """How many tools were called, from metrics.json or what the grading repeats of it."""
    for metrics in (record.metrics, record.grading.execution_metrics if record.grading else None):
        if metrics is not None and metrics.total_tool_calls is not None:
            return metrics.total_tool_calls
    return None


def errors(record: RunRecord) -> int | None:
    """How many errors the executor met."""
    for metrics in (record.metrics, record.grading.execution_metrics if record.grading else None):
        if metrics is not None and metrics.errors_encountered is not None:
            return metrics.errors_encountered
    return None
