"""What a run record of a folder comes to in the rows of a batch, in texts and figures that every database keeps."""

from typing import Any

from schemas.states import Outcome
from service.aggregation.records import COUNTED, Options, RunRecord
from service.aggregation.scores import score, time_seconds, total_tokens
from service.workspaces.collecting import Collected
from service.workspaces.reading import finite

# Runs that left nothing to grade, however their folder looks.
NOT_EXECUTED = frozenset({Outcome.EXECUTOR_ERROR, Outcome.TIMEOUT, Outcome.REFUSED, Outcome.CONTAMINATED})
# Runs that ended for a reason of ours: whether there is something to grade, their folder says.
_PERHAPS = frozenset({Outcome.INFRA_ERROR, Outcome.CANCELLED, Outcome.OVER_BUDGET})
_KINDS = ("input", "output", "cache_read", "cache_write")


def executed_facts(record: RunRecord, outputs: int) -> dict[str, Any]:
    """What lists show of a run, as an execution of ours would have written it."""
    tokens = record.tokens
    return {
        "seconds": finite(time_seconds(record)),
        "tokens": total_tokens(record),
        "usage": {f"{kind}_tokens": getattr(tokens, kind) for kind in _KINDS} if tokens else {},
        "cost_usd": record.cost_usd,
        "outputs": outputs,
        "simulated": record.simulated,
        "skill_used": record.skill_used,
    }


def decided_facts(record: RunRecord) -> dict[str, Any]:
    """What lists show of what was decided about a run."""
    if record.outcome not in COUNTED:
        return {}
    scores = score(record, Options())
    gate = record.structural.gate_passed if record.structural else None
    return {"passed": scores.passed, "total": scores.total, "gate": gate}


def was_executed(outcome: Outcome, collected: Collected) -> bool:
    """Whether there is something that could be graded."""
    if outcome in _PERHAPS:
        return "transcript.md" in collected.files
    return outcome not in NOT_EXECUTED


def kept_text(text: str) -> str:
    """A text that every database keeps: no NUL, no half of a surrogate pair."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
