"""Gradings in the words of another dialect."""

from schemas.conversion.losses import Losses
from schemas.grading import CriterionResult, EvalFeedback, GradedExpectation, Grading, UserNotes
from schemas.kinds import Dialect
from schemas.structural import Summary


def convert_grading(grading: Grading, to: Dialect, losses: Losses) -> Grading:
    """Passed or not becomes a score, or the other way round."""
    return _scored(grading, losses) if to is Dialect.CASES else _decided(grading, losses)


def _decided(grading: Grading, losses: Losses) -> Grading:
    changed = grading.model_copy(
        update={
            "user_notes": _notes_as_lists(grading.user_notes),
            "eval_feedback": _feedback_as_object(grading.eval_feedback),
        }
    )
    if grading.results is None:
        return changed
    losses.say("results", "scores are kept under the key score, which readers of the other dialect ignore")
    expectations = tuple(map(_from_criterion, grading.results))
    return changed.model_copy(
        update={
            "results": None,
            "expectations": (*(grading.expectations or ()), *expectations),
            "summary": grading.summary or _summary(expectations),
        }
    )


def _from_criterion(result: CriterionResult) -> GradedExpectation:
    score = {} if result.score is None else {"score": result.score}
    return GradedExpectation(
        text=result.criterion, passed=result.passed, evidence=result.reasoning, extra={**result.extra, **score}
    )


def _summary(expectations: tuple[GradedExpectation, ...]) -> Summary:
    passed = sum(one.passed is True for one in expectations)
    failed = sum(one.passed is False for one in expectations)
    rate = round(passed / len(expectations), 4) if expectations else None
    return Summary(passed=passed, failed=failed, total=len(expectations), pass_rate=rate)


def _notes_as_lists(notes: UserNotes | None) -> UserNotes | None:
    # A bare text here crashes the public aggregator.
    if notes is None or notes.text is None:
        return notes
    return UserNotes(uncertainties=(notes.text,) if notes.text else (), needs_review=(), workarounds=())


def _feedback_as_object(feedback: EvalFeedback | None) -> EvalFeedback | None:
    if feedback is None or feedback.text is None:
        return feedback
    return EvalFeedback(suggestions=(), overall=feedback.text) if feedback.text else None


def _scored(grading: Grading, losses: Losses) -> Grading:
    if grading.expectations:
        losses.say("expectations", "passed becomes a score of 4, failed a score of 1: there was no score")
    if grading.summary is not None:
        losses.say("summary", "the counts of the summary are lost; they follow from the results", "lost")
    results = (
        *(grading.results or ()),
        *map(_from_expectation, grading.expectations or ()),
        *(
            CriterionResult(criterion=one.name, score=round(one.score), passed=one.score >= 3, reasoning=one.evidence)
            for one in grading.rubric_scores or ()
            if one.score is not None
        ),
    )
    return grading.model_copy(
        update={
            **_totals(results),
            "results": results,
            "expectations": None,
            "summary": None,
            "rubric_scores": None,
            "user_notes": _notes_as_text(grading.user_notes),
            "eval_feedback": _feedback_as_text(grading.eval_feedback),
        }
    )


def _from_expectation(expectation: GradedExpectation) -> CriterionResult:
    score = None if expectation.passed is None else 4 if expectation.passed else 1
    return CriterionResult(
        criterion=expectation.text, score=score, passed=expectation.passed, reasoning=expectation.evidence
    )


def _totals(results: tuple[CriterionResult, ...]) -> dict[str, object]:
    scores = [result.score for result in results if result.score is not None]
    mean = round(sum(scores) / len(scores), 1) if scores else None
    overall = "pass" if all(result.passed for result in results) else "fail"
    return {"overall_score": mean, "required_score": mean, "overall": overall if results else None}


def _notes_as_text(notes: UserNotes | None) -> UserNotes | None:
    if notes is None or notes.text is not None:
        return notes
    lines = [*(notes.uncertainties or ()), *(notes.needs_review or ()), *(notes.workarounds or ())]
    return UserNotes(text="; ".join(lines))


def _feedback_as_text(feedback: EvalFeedback | None) -> EvalFeedback | None:
    if feedback is None or feedback.text is not None:
        return feedback
    reasons = [f"{one.assertion}: {one.reason}" if one.assertion else one.reason for one in feedback.suggestions or ()]
    return EvalFeedback(text="; ".join(filter(None, [feedback.overall, *reasons])))
