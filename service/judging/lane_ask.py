"""Asking through the half-price lane: put the request there and come back, or take the answer that came."""

from collections.abc import Callable
from dataclasses import dataclass

from schemas.states import Outcome
from service.errors import BadInput, StageFailed
from service.judging.ask import Asker
from service.judging.judgement import Ask, InLane, JudgeAnswer
from service.judging.lane import LaneEntry, LaneRequest, LaneSettings, LaneStore, RequestState
from service.judging.request import JudgeRequest
from service.limits.budgets import OverBudget

MODES = ("realtime", "batch", "auto")


def uses_lane(mode: str, runs: int, settings: LaneSettings) -> bool:
    """Whether a batch of so many runs is judged at half the price."""
    if mode not in MODES:
        raise BadInput(f"judging is {mode!r}; choose one of {', '.join(MODES)}")
    return mode == "batch" or (mode == "auto" and runs >= settings.auto_runs)


@dataclass(frozen=True)
class LaneAsk:
    """An `ask` for one run that waits for nobody."""

    store: LaneStore
    realtime: Ask  # for repairs, and for what the lane gave back
    asker: Asker
    again_seconds: float = 60.0

    def __call__(self, request: JudgeRequest) -> JudgeAnswer:
        if len(request.messages) > 1:
            # A repair in the lane would take as long again as the answer did.
            return self.realtime(request)
        entry = self.store.offer(self._lane_request(request))
        outcomes: dict[RequestState, Callable[[LaneEntry], JudgeAnswer]] = {
            RequestState.ANSWERED: answered,
            RequestState.RETURNED: lambda _: self.realtime(request),
            RequestState.OVER_BUDGET: over_budget,
            RequestState.CANCELLED: cancelled,
        }
        if entry.state in outcomes:
            return outcomes[entry.state](entry)
        raise InLane(self.again_seconds, f"judgement {request.id[:12]} is in the half-price lane ({entry.state})")

    def _lane_request(self, request: JudgeRequest) -> LaneRequest:
        if self.asker.run_id is None or self.asker.batch_id is None:
            raise BadInput("the half-price lane judges runs of a batch only")
        size = request.body_bytes()
        return LaneRequest(request.id, self.asker.run_id, self.asker.batch_id, self.asker.team, request.slot, size)


def answered(entry: LaneEntry) -> JudgeAnswer:
    """The answer that came."""
    assert entry.answer is not None
    return entry.answer


def over_budget(entry: LaneEntry) -> JudgeAnswer:
    """The budget was spent before it could be sent."""
    raise OverBudget("lane", entry.error or "over budget")


def cancelled(_entry: LaneEntry) -> JudgeAnswer:
    """Its batch was cancelled."""
    raise StageFailed(Outcome.CANCELLED, "the judgement was cancelled with its batch")
