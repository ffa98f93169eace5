"""grading.json as skill-creator's tools can read it, whatever dialect the judgement came from."""

from pydantic import JsonValue

from schemas.dialects import Dialect, write
from schemas.grading import EvalFeedback, Grading, UserNotes
from service.aggregation.records import RunRecord
from service.aggregation.runs import expectation
from service.aggregation.scores import RunScores

Json = dict[str, JsonValue]
NO_RATE = "nothing here is passed or failed: summary.pass_rate 0 stands for no pass rate"


def exported_grading(run: RunRecord, scores: RunScores) -> Json:
    """The judgement with every decision in `expectations` and a summary that follows from them.

    A null where its readers expect an object stops them, so absent parts are left out; `timing` has no total, because
    with one they would take characters for tokens.
    """
    found: Json = {
        "expectations": [expectation(decision) for decision in scores.decisions],
        "summary": {
            "passed": scores.passed,
            "failed": scores.total - scores.passed,
            "total": scores.total,
            "pass_rate": 0.0 if scores.pass_rate is None else scores.pass_rate,
        },
    }
    metrics = run.metrics or (run.grading.execution_metrics if run.grading else None)
    if metrics is not None:
        found["execution_metrics"] = _without_nulls(write(metrics, Dialect.SKILL_CREATOR))
    if run.grading is not None:
        found |= _judgement(run.grading)
    if scores.pass_rate is None:
        found["user_notes_summary"] = _with_remark(found.get("user_notes_summary"))
    return found


def _with_remark(notes: JsonValue) -> Json:
    """The executor's notes and why there is a rate of 0: the format has no way to say that there is none."""
    kept = notes if isinstance(notes, dict) else _notes(UserNotes())
    told = kept.get("uncertainties")
    return {**kept, "uncertainties": [*(told if isinstance(told, list) else []), NO_RATE]}


def _judgement(grading: Grading) -> Json:
    whole = write(grading, Dialect.SKILL_EVALUATOR)
    found: Json = {}
    for name in ("rubric_scores", "rubric_summary", "claims"):
        value = whole.get(name) if isinstance(whole, dict) else None
        if value is not None:
            found[name] = value
    if grading.user_notes is not None:
        found["user_notes_summary"] = _notes(grading.user_notes)
    if grading.eval_feedback is not None:
        found["eval_feedback"] = _feedback(grading.eval_feedback)
    return found


def _notes(notes: UserNotes) -> Json:
    """Three lists; one bare text, as the cases dialect has it, stops the readers."""
    uncertainties = [*(notes.uncertainties or ()), *([notes.text] if notes.text else [])]
    return {
        "uncertainties": list(uncertainties),
        "needs_review": list(notes.needs_review or ()),
        "workarounds": list(notes.workarounds or ()),
    }


def _feedback(feedback: EvalFeedback) -> Json:
    suggestions: list[JsonValue] = [
        {"assertion": suggestion.assertion, "reason": suggestion.reason}
        if suggestion.assertion
        else {"reason": suggestion.reason}
        for suggestion in feedback.suggestions or ()
    ]
    return {"suggestions": suggestions, "overall": feedback.overall or feedback.text or ""}


def _without_nulls(value: JsonValue) -> JsonValue:
    return {k: v for k, v in value.items() if v is not None} if isinstance(value, dict) else value
