"""Run records for tests of the aggregator, the report and the workspaces."""

from collections.abc import Mapping, Sequence

from schemas.base import CaseId
from schemas.grading import DimensionScore, GradedExpectation, Grading
from schemas.metrics import Metrics
from schemas.states import Outcome, Role
from schemas.timing import Timing
from service.aggregation.records import Arm, BatchPlan, CaseFacts, Options, RunRecord, Tokens

ROLES = {
    "with_skill": Role.TREATMENT,
    "new_skill": Role.TREATMENT,
    "without_skill": Role.CONTROL,
    "old_skill": Role.CONTROL,
}


def plan(*configurations: str, cases: Sequence[CaseFacts] | None = None, runs: int | None = None) -> BatchPlan:
    """The plan of a batch with these arms."""
    names = configurations or ("with_skill", "without_skill")
    arms = tuple(Arm(name, ROLES.get(name)) for name in names)
    facts = None if cases is None else tuple(cases)
    return BatchPlan("pdf", "2026-01-15T10:30:00Z", arms, cases=facts, runs_per_configuration=runs, options=Options())


def grading(*verdicts: bool, scores: Mapping[str, float] | None = None, texts: Sequence[str] = ()) -> Grading:
    """A judgement of so many statements, and of dimensions if there are any."""
    names = texts or [f"statement {number}" for number in range(1, len(verdicts) + 1)]
    expectations = tuple(
        GradedExpectation(text=text, passed=passed, evidence=f"evidence for {text}")
        for text, passed in zip(names, verdicts, strict=True)
    )
    dimensions = tuple(DimensionScore(name=name, score=value, evidence="why") for name, value in (scores or {}).items())
    return Grading(expectations=expectations or None, rubric_scores=dimensions or None)


def passing(passed: int, total: int, scores: Mapping[str, float] | None = None) -> Grading:
    """A judgement with the first `passed` of `total` statements passed."""
    return grading(*(number < passed for number in range(total)), scores=scores)


def run(
    case: CaseFacts | CaseId,
    configuration: str,
    number: int,
    judged: Grading | None = None,
    *,
    outcome: Outcome = Outcome.SCORED,
    seconds: float | None = None,
    tokens: int | None = None,
    cost: float | None = None,
    skill_used: bool | None = None,
    reason: str | None = None,
) -> RunRecord:
    """One settled run."""
    return RunRecord(
        case if isinstance(case, CaseFacts) else CaseFacts(case, f"Case {case}"),
        configuration,
        ROLES.get(configuration),
        number,
        outcome,
        grading=judged,
        metrics=Metrics(total_tool_calls=4, errors_encountered=0),
        timing=None if seconds is None else Timing(executor_duration_seconds=seconds),
        tokens=None if tokens is None else Tokens(tokens),
        cost_usd=cost,
        skill_used=skill_used,
        reason=reason,
    )
