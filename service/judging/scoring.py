"""From a verdict to a grading: everything that is arithmetic is done here, not by the judge."""

from collections.abc import Sequence
from statistics import fmean

from schemas.base import Number
from schemas.grading import (
    Claim,
    CriterionResult,
    DimensionScore,
    EvalFeedback,
    GradedExpectation,
    Grading,
    RubricSummary,
    Suggestion,
    UserNotes,
)
from schemas.kinds import Dialect
from schemas.metrics import Metrics
from schemas.structural import Structural, Summary
from schemas.timing import Timing
from service.judging.answers import JUDGED_CONVENTIONS
from service.judging.conventions import convention_checks
from service.judging.material import JudgeMaterial
from service.judging.questions import Questions
from service.judging.verdict import NotesSummary, Score, Verdict

TOP_SCORE = 5
PASSING_SCORE = 3


def grade(material: JudgeMaterial, questions: Questions, verdict: Verdict, word_target: int) -> Grading:
    """The grading of one run in canonical form, with the fields of its suite's dialect."""
    if material.dialect is Dialect.CASES:
        return cases_grading(material, questions, verdict, word_target)
    expectations = (*given(material.structural), *statements(questions, verdict))
    return Grading(
        expectations=expectations,
        summary=summary_of(expectations),
        rubric_scores=tuple(dimension_score(questions, score) for score in verdict.dimensions) or None,
        rubric_summary=rubric_summary(questions, verdict.dimensions),
        results=tuple(criterion_result(questions, score) for score in verdict.criteria) or None,
        execution_metrics=material.metrics,
        timing=material.timing,
        claims=tuple(claims(verdict, with_type=True)),
        user_notes=notes_lists(verdict.notes, material.dialect),
        eval_feedback=feedback(questions, verdict),
    )


def cases_grading(material: JudgeMaterial, questions: Questions, verdict: Verdict, word_target: int) -> Grading:
    """The grading of a case with criteria."""
    results = tuple(criterion_result(questions, score) for score in verdict.criteria)
    others = (*given(material.structural), *statements(questions, verdict))
    required = [bool(criterion.required) for criterion in questions.criteria.values()]
    needed = [result for result, must in zip(results, required, strict=True) if must]
    return Grading(
        case_id=material.case.id,
        version=material.version,
        run=material.run_number,
        overall_score=mean_score(results),
        required_score=mean_score(needed),
        results=results,
        overall="pass" if all(result.passed for result in needed) else "fail",
        conventions=convention_checks(material, verdict.conventions, word_target),
        claims=tuple(claims(verdict, with_type=False)),
        user_notes=UserNotes(text=notes_text(verdict.notes)),
        eval_feedback=EvalFeedback(text=feedback_text(questions, verdict)),
        execution_metrics=material.metrics or Metrics(),
        expectations=others or None,
        rubric_scores=tuple(dimension_score(questions, score) for score in verdict.dimensions) or None,
        rubric_summary=rubric_summary(questions, verdict.dimensions),
    )


def given(structural: Structural | None) -> list[GradedExpectation]:
    """Structural results as graded expectations; one that code could not decide is not listed."""
    checks = structural.expectations if structural else ()
    return [
        GradedExpectation(id=check.id, text=check.text, passed=check.passed, evidence=check.evidence)
        for check in checks
        if check.passed is not None
    ]


def statements(questions: Questions, verdict: Verdict) -> list[GradedExpectation]:
    """The judged statements with their own texts."""
    return [
        GradedExpectation(
            id=questions.own_statements[one.id].id,
            text=questions.own_statements[one.id].text,
            passed=one.passed,
            evidence=one.evidence,
        )
        for one in verdict.statements
    ]


def summary_of(decided: Sequence[GradedExpectation | CriterionResult]) -> Summary:
    """Counts over expectations; no rate over nothing."""
    passed = sum(one.passed is True for one in decided)
    total = len(decided)
    rate = round(passed / total, 4) if total else None
    return Summary(passed=passed, failed=total - passed, total=total, pass_rate=rate)


def counts_of(grading: Grading) -> Summary:
    """What passed of all that a grading decides: expectations and criteria."""
    return summary_of([*(grading.expectations or ()), *(grading.results or ())])


def with_grader(timing: Timing, seconds: float) -> Timing:
    """The wall clock of a grading: the executor's time, the judges', and both together."""
    took = timing.executor_duration_seconds
    if took is None:
        took = timing.total_duration_seconds
    if took is None and timing.duration_ms is not None:
        took = timing.duration_ms / 1000
    total = None if took is None else round(took + seconds, 3)
    return Timing(executor_duration_seconds=took, grader_duration_seconds=seconds, total_duration_seconds=total)


def dimension_score(questions: Questions, score: Score) -> DimensionScore:
    """A dimension under its own name."""
    return DimensionScore(name=questions.dimensions[score.id].name, score=score.score, evidence=score.evidence)


def rubric_summary(questions: Questions, scores: Sequence[Score]) -> RubricSummary | None:
    """The weighted mean with the suite's weights; None without a rubric."""
    weights = [weight_of(questions, score.id) for score in scores]
    if not scores or sum(weights) <= 0:
        return None
    mean = sum(score.score * weight for score, weight in zip(scores, weights, strict=True)) / sum(weights)
    return RubricSummary(
        weighted_mean=round(mean, 4), max_possible=float(TOP_SCORE), normalized=round(mean / TOP_SCORE, 4)
    )


def weight_of(questions: Questions, id_: str) -> float:
    """A dimension's weight; one that names none weighs 1."""
    weight = questions.dimensions[id_].weight
    return 1.0 if weight is None else float(weight)


def criterion_result(questions: Questions, score: Score) -> CriterionResult:
    """A criterion under its own label; passed follows from the score that is written: a mean of 2.5 has not."""
    return CriterionResult(
        criterion=questions.criteria[score.id].criterion,
        score=score.score,
        passed=score.score >= PASSING_SCORE,
        reasoning=score.evidence,
    )


def mean_score(results: Sequence[CriterionResult]) -> Number | None:
    """The mean to one decimal; None over nothing."""
    scores = [result.score for result in results if result.score is not None]
    return round(fmean(scores), 1) if scores else None


def claims(verdict: Verdict, with_type: bool) -> list[Claim]:
    """The claims; the cases dialect has no types."""
    return [
        Claim(claim=c.claim, type=c.type if with_type else None, verified=c.verified, evidence=c.evidence)
        for c in verdict.claims
    ]


def notes_lists(notes: NotesSummary, dialect: Dialect) -> UserNotes | None:
    """Three lists; skill-evaluator's gradings carry them only when there is something in them."""
    lists = notes.model_dump()
    if dialect is Dialect.SKILL_EVALUATOR and not any(lists.values()):
        return None
    return UserNotes(**lists)


def notes_text(notes: NotesSummary) -> str:
    """The notes in one text."""
    labelled = {"Unsure": notes.uncertainties, "Needs review": notes.needs_review, "Workarounds": notes.workarounds}
    return " ".join(f"{label}: {'; '.join(texts)}." for label, texts in labelled.items() if texts)


def feedback(questions: Questions, verdict: Verdict) -> EvalFeedback | None:
    """Remarks on the suite; None when there are none."""
    if not verdict.remarks and not verdict.overall:
        return None
    suggestions = tuple(
        Suggestion(reason=remark.reason, assertion=label_of(questions, remark.about)) for remark in verdict.remarks
    )
    return EvalFeedback(suggestions=suggestions, overall=verdict.overall)


def feedback_text(questions: Questions, verdict: Verdict) -> str:
    """The remarks in one text, empty when there are none."""
    told = [
        f"{label_of(questions, remark.about)}: {remark.reason}" if remark.about else remark.reason
        for remark in verdict.remarks
    ]
    return " ".join([*told, *([verdict.overall] if verdict.overall else [])])


def label_of(questions: Questions, id_: str | None) -> str | None:
    """What people call the question: a statement's text, a name, or a check's id and text."""
    if id_ is None or id_ in JUDGED_CONVENTIONS:
        return id_
    if id_ in questions.own_statements:
        return questions.own_statements[id_].text
    if id_ in questions.criteria:
        return questions.criteria[id_].criterion
    if id_ in questions.checks:
        return f"{id_}: {questions.checks[id_].description or questions.checks[id_].type}"
    return questions.dimensions[id_].name
