"""Stop reasons of a model's last answer that are no good end of a run, for every runner that hears them."""

from schemas.states import Outcome
from service.errors import StageFailed

_BAD = {
    "refusal": (Outcome.REFUSED, "the model declined the task"),
    "max_tokens": (Outcome.EXECUTOR_ERROR, "the model's last answer was cut at its output limit"),
    "model_context_window_exceeded": (
        Outcome.EXECUTOR_ERROR,
        "the conversation no longer fits into the model's context window",
    ),
}


def refuse_bad_end(stop_reason: str, more: str = "") -> None:
    """Raise what a run came to whose last answer stopped so; `more` is put behind the words."""
    if stop_reason in _BAD:
        outcome, words = _BAD[stop_reason]
        raise StageFailed(outcome, words + more)
