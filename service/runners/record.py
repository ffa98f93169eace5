"""What an execution leaves beside its outputs, when it ended well and when it did not."""

import time
from dataclasses import asdict
from typing import Any

from schemas.dialects import Dialect, write
from schemas.metrics import Metrics
from schemas.timing import Timing
from service.documents import stamp, to_json
from service.errors import StageFailed
from service.runners.port import Assignment, Execution


def metrics_file(metrics: Metrics, execution: Execution) -> bytes:
    """metrics.json; says so if the model was simulated."""
    return to_json(write(_labelled(metrics, execution), Dialect.SKILL_CREATOR))


def timing_file(execution: Execution, started: float) -> bytes:
    """timing.json; says so if the model was simulated."""
    return to_json(write(_labelled(_timing(execution, started), execution), Dialect.SKILL_CREATOR))


def said(execution: Execution) -> dict[str, bytes]:
    """What was said, by artifact: kept however the run ends, or nobody could see why."""
    files = {"transcript.md": execution.transcript.encode("utf-8", "backslashreplace")}
    if execution.transcript_events is not None:
        files["transcript.jsonl"] = execution.transcript_events
    if execution.user_notes is not None:
        files["user_notes.md"] = execution.user_notes.encode("utf-8", "backslashreplace")
    return files


def told(execution: Execution) -> dict[str, Any]:
    """What the runner tells of its work, for execution.json."""
    return {
        "skill_used": execution.skill_used,
        "skill_files_read": list(execution.skill_files_read),
        "sandbox": execution.sandbox_tier,
        "simulated": execution.simulated,
        "usage": asdict(execution.usage),
        "cost_usd": execution.cost_usd,
        **execution.details,
    }


def run_facts(execution: Execution) -> dict[str, Any]:
    """What is kept in the run's row."""
    return {
        "seconds": round(execution.seconds, 3),
        "tokens": execution.usage.total,
        "usage": asdict(execution.usage),
        "cost_usd": execution.cost_usd,
        "simulated": execution.simulated,
        "skill_used": execution.skill_used,
        "sandbox": execution.sandbox_tier,
    }


def failed(failure: StageFailed, runner: str, assignment: Assignment, execution: Execution) -> StageFailed:
    """The failure with everything that is known of the work before it: it was paid for, and people will ask."""
    metrics = execution.metrics.model_copy(update={"transcript_chars": len(execution.transcript)})
    about = {
        "runner": runner,
        "model": execution.model or assignment.model,
        "configuration": assignment.configuration,
        "skill_digest": assignment.skill.digest if assignment.skill else None,
        **told(execution),
    }
    files = {
        **said(execution),
        "metrics.json": metrics_file(metrics, execution),
        "timing.json": timing_file(execution, time.time() - execution.seconds),
        "execution.json": to_json(about),
    }
    return StageFailed(failure.outcome, str(failure), {**files, **failure.files}, run_facts(execution))


def _labelled(document: Any, execution: Execution) -> Any:
    return document.model_copy(update={"extra": {"simulated": True}}) if execution.simulated else document


def _timing(execution: Execution, started: float) -> Timing:
    return Timing(
        total_tokens=execution.usage.total,
        duration_ms=round(execution.seconds * 1000),
        total_duration_seconds=round(execution.seconds, 1),
        executor_start=stamp(started),
        executor_end=stamp(started + execution.seconds),
        executor_duration_seconds=round(execution.seconds, 3),
    )
