"""One run as it stands in benchmark.json."""

from collections.abc import Iterator

from pydantic import JsonValue

from schemas.grading import UserNotes
from service.aggregation.figures import rounded
from service.aggregation.records import RunRecord
from service.aggregation.scores import (
    Decision,
    RunScores,
    criteria_summary,
    errors,
    time_seconds,
    tool_calls,
    total_tokens,
)

Json = dict[str, JsonValue]


def counted_run(record: RunRecord, scores: RunScores) -> Json:
    """An entry of `runs`: a run that enters means."""
    return {
        **_identity(record),
        "result": _result(record, scores),
        "expectations": [expectation(decision) for decision in scores.decisions],
        "notes": [*_notes(record), *scores.warnings],
        **_rubric(record),
        **_traces(record),
    }


def uncounted_run(record: RunRecord) -> Json:
    """An entry of `uncounted_runs`: a run that ended otherwise. Readers of `runs` would take it for a score of 0."""
    return {
        **_identity(record),
        "outcome": record.outcome.value,
        "reason": record.reason,
        **_costs(record),
        **_traces(record),
    }


def _identity(record: RunRecord) -> Json:
    return {
        "eval_id": record.case.id,
        "eval_name": record.case.label,
        "configuration": record.configuration,
        "run_number": record.run_number,
    }


def _result(record: RunRecord, scores: RunScores) -> Json:
    found: Json = {
        "pass_rate": rounded(scores.pass_rate),
        "passed": scores.passed,
        "failed": scores.total - scores.passed,
        "total": scores.total,
        **_costs(record),
        "tool_calls": tool_calls(record),
        "errors": errors(record),
        "outcome": record.outcome.value,
        "rubric_normalized": rounded(scores.rubric_normalized),
        "overall_efficiency": rounded(scores.overall_efficiency),
    }
    criteria = criteria_summary(scores.decisions)
    if criteria is not None:
        found["overall_score"], found["required_score"] = criteria.overall_score, criteria.required_score
        found["overall"] = criteria.overall
    return found


def _costs(record: RunRecord) -> Json:
    """What the run took; kept for every outcome, because it was paid."""
    seconds = time_seconds(record)
    found: Json = {"time_seconds": seconds, "tokens": total_tokens(record)}
    if record.timing is not None and record.timing.grader_duration_seconds is not None:
        found["grader_seconds"] = record.timing.grader_duration_seconds
    if record.tokens is not None and record.tokens.output is not None:
        kinds = ("input", "output", "cache_read", "cache_write")
        found["tokens_by_kind"] = {kind: getattr(record.tokens, kind) for kind in kinds}
    if record.cost_usd is not None:
        found["cost_usd"] = record.cost_usd
    return found


def expectation(decision: Decision) -> Json:
    """One decision as readers know it."""
    found: Json = {"text": decision.text, "passed": decision.passed, "evidence": decision.evidence or ""}
    found["kind"] = decision.kind.value
    for name in ("id", "score", "critical", "required"):
        value = getattr(decision, name)
        if value is not None:
            found[name] = value
    return found


def _rubric(record: RunRecord) -> Json:
    scores = (record.grading.rubric_scores if record.grading else None) or ()
    if not scores:
        return {}
    return {"rubric_scores": {d.name: {"score": d.score, "evidence": d.evidence or ""} for d in scores}}


def _traces(record: RunRecord) -> Json:
    found: Json = {"skill_used": record.skill_used}
    if record.simulated:
        found["simulated"] = True
    return {**found, "paths": dict(record.paths)} if record.paths else found


def _notes(record: RunRecord) -> Iterator[str]:
    yield from user_notes(record.grading.user_notes if record.grading else None)
    yield from record.notes


def user_notes(notes: UserNotes | None) -> Iterator[str]:
    """What the executor flagged, in the order readers know: uncertainties, needs review, workarounds."""
    if notes is None:
        return
    for group in (notes.uncertainties, notes.needs_review, notes.workarounds):
        yield from group or ()
    if notes.text:
        yield notes.text
