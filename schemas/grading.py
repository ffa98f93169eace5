"""grading.json: what the judge decided about one run, all dialects in one form."""

from schemas.base import CaseId, Node, Number
from schemas.metrics import Metrics
from schemas.structural import Summary
from schemas.timing import Timing


class GradedExpectation(Node):
    """One statement, decided; `passed` is None when the file does not say."""

    text: str
    passed: bool | None = None
    evidence: str | None = None
    id: CaseId | None = None


class CriterionResult(Node):
    """One criterion of the cases dialect: passed is derived, score >= 3."""

    criterion: str
    score: Number | None = None  # whole from one judge; a panel's mean need not be
    passed: bool | None = None
    reasoning: str | None = None


class DimensionScore(Node):
    """One rubric dimension, scored 1-5."""

    name: str
    score: Number | None = None
    evidence: str | None = None


class RubricSummary(Node):
    """The rubric in one number: weighted_mean of 5, normalized to 0-1."""

    weighted_mean: Number | None = None
    max_possible: Number | None = None
    normalized: Number | None = None


class Claim(Node):
    """Something the answer claims, and whether it holds."""

    claim: str
    type: str | None = None  # factual, process, quality; the cases dialect has none
    verified: bool | None = None
    evidence: str | None = None


class UserNotes(Node):
    """What the executor flagged: three lists (skill-creator) or one text (cases)."""

    uncertainties: tuple[str, ...] | None = None
    needs_review: tuple[str, ...] | None = None
    workarounds: tuple[str, ...] | None = None
    text: str | None = None


class Suggestion(Node):
    """One way to improve the suite."""

    reason: str
    assertion: str | None = None


class EvalFeedback(Node):
    """The judge's remarks on the suite: suggestions and overall, or one text (cases)."""

    suggestions: tuple[Suggestion, ...] | None = None
    overall: str | None = None
    text: str | None = None


class ConventionCheck(Node):
    """One of the cases dialect's five conventions; `passed` is None where it does not apply."""

    passed: bool | None = None
    details: str | None = None


class Grading(Node):
    """Everything one judgement says about one run."""

    expectations: tuple[GradedExpectation, ...] | None = None
    summary: Summary | None = None
    rubric_scores: tuple[DimensionScore, ...] | None = None
    rubric_summary: RubricSummary | None = None
    claims: tuple[Claim, ...] | None = None
    user_notes: UserNotes | None = None
    eval_feedback: EvalFeedback | None = None
    execution_metrics: Metrics | None = None
    timing: Timing | None = None
    # the cases dialect
    case_id: CaseId | None = None
    version: int | None = None
    run: int | None = None
    overall_score: Number | None = None
    required_score: Number | None = None
    results: tuple[CriterionResult, ...] | None = None
    overall: str | None = None  # pass or fail
    conventions: dict[str, ConventionCheck] | None = None
