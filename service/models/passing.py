"""What may pass a gateway: these two questions, the run's own model, and so much of it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from schemas.states import Outcome
from service.errors import StageFailed
from service.models.failures import error_outcome
from service.models.port import Call

MESSAGES = "/v1/messages"
COUNT_TOKENS = "/v1/messages/count_tokens"


@dataclass(frozen=True)
class Allowance:
    """The most that one run may ask; retries and helpers of the program are counted too."""

    calls: int = 400
    total_tokens: int = 12_000_000  # cache reads included


def upstream_path(path: str, query: Mapping[str, str]) -> str | None:
    """Where a request goes, made of our own words only; None: it does not pass."""
    if path not in (MESSAGES, COUNT_TOKENS):
        return None
    return path + ("?beta=true" if query.get("beta") == "true" else "")


def asked_params(body: bytes) -> dict[str, Any] | None:
    """The request's object, or None for a body that two readers could understand in two ways."""
    try:
        params = json.loads(body, object_pairs_hook=_without_twins)
    except (ValueError, RecursionError):
        return None
    return params if isinstance(params, dict) else None


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice in one object")
    return found


def check_run(call: Call, allowance: Allowance, calls: int, tokens: int) -> None:
    """Raise StageFailed if the run was stopped or has had its share."""
    if call.is_cancelled():
        raise StageFailed(Outcome.CANCELLED, "the run was stopped before the model was asked")
    outcome = error_outcome(call.purpose)
    if calls >= allowance.calls:
        raise StageFailed(outcome, f"the agent asked the model more than {allowance.calls} times and was not done")
    if tokens > allowance.total_tokens:
        raise StageFailed(outcome, f"the agent used more than {allowance.total_tokens} tokens and was not done")


def check_model(call: Call, asked: Any) -> None:
    """Raise StageFailed unless the run's own model is asked: no other is limited, priced or wanted here."""
    if asked != call.model:
        words = f"the program asked for the model {str(asked)[:100]!r}; this run may ask {call.model} only"
        raise StageFailed(error_outcome(call.purpose), words)
