"""What we ask of a limiter: one queue per model for the whole fleet, and a slot in it for every request.

A grant is a slot: the request may leave in `seconds` from now, and nobody else is given that time. So waiting needs
no polling and no two workers wake for the same slot. All slots of a model stand in one queue; how many of them one
flow (a team's executions, or a team's judgements) may hold at once is its *window*. Everybody in a queue waits
equally long, so rates are as windows are: equal windows are fairness between teams, and the windows of judging
together are judging's share. A flow that is alone has the whole queue; nothing is kept free for the absent.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from service.errors import Unavailable


class RetryLater(Unavailable):
    """The model is busy for longer than a worker may stand still; come back in `seconds`."""

    def __init__(self, seconds: float, message: str) -> None:
        self.seconds = seconds
        super().__init__(message)


class Purpose(StrEnum):
    """What a request is for."""

    EXECUTE = "execute"
    JUDGE = "judge"
    COMPARE = "compare"
    ANALYZE = "analyze"


@dataclass(frozen=True)
class Rate:
    """What a model may be asked per minute; None is unlimited until the provider's headers name a limit."""

    requests: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True)
class Policy:
    """How the limiter shares a model out."""

    rates: Mapping[str, Rate] = field(default_factory=dict)  # by model
    default_rate: Rate = Rate()  # for models not named
    judge_share: float = 0.3  # of the rate, kept for judging while there is judging to do
    burst_seconds: float = 1.0  # how much of the rate may leave at once after a quiet time
    horizon_seconds: float = 1.0  # how far ahead slots are given; short, so that few clients can fill a window
    active_seconds: float = 10.0  # a flow that asked within this time counts when windows are cut
    max_pause_seconds: float = 600.0  # the longest pause a provider can impose in one answer
    team_weights: Mapping[str, float] = field(default_factory=dict)  # a team not named weighs 1

    def rate(self, model: str) -> Rate:
        """The rate of a model."""
        return self.rates.get(model, self.default_rate)

    def purpose_weight(self, purpose: Purpose) -> float:
        """How much of the queue the flows of a purpose may fill together when both purposes ask."""
        return 1.0 - self.judge_share if purpose is Purpose.EXECUTE else self.judge_share


@dataclass(frozen=True)
class Demand:
    """One request to a model, with the tokens it will probably take."""

    model: str
    team: str
    purpose: Purpose
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def flow(self) -> str:
        """The queue's word for whom this is for."""
        # Comparing and analysing are judging: one share for all three, not one for each.
        kind = Purpose.EXECUTE if self.purpose is Purpose.EXECUTE else Purpose.JUDGE
        return f"{kind}:{self.team}"


@dataclass(frozen=True)
class Turn:
    """The limiter's answer: go in `seconds` if granted; nothing was taken and ask again in `seconds` if not."""

    granted: bool
    seconds: float


@dataclass(frozen=True)
class Seen:
    """What the provider said about its own limits with one answer; None where it said nothing."""

    requests_limit: int | None = None
    requests_remaining: int | None = None
    input_tokens_limit: int | None = None
    input_tokens_remaining: int | None = None
    output_tokens_limit: int | None = None
    output_tokens_remaining: int | None = None


class Limiter(Protocol):
    """Gives out slots; safe to use from many threads, and, if it says so, from many machines."""

    def acquire(self, demand: Demand, patience_seconds: float) -> Turn:
        """Take a slot at most `patience_seconds` away, or take nothing."""

    def settle(self, demand: Demand, input_tokens: int, output_tokens: int, seen: Seen | None = None) -> None:
        """After the answer: replace the guessed tokens by the counted ones and learn from the provider's headers."""

    def pause(self, model: str, seconds: float) -> None:
        """Nobody asks this model for so long; a shorter pause never shortens a longer one."""

    def paused_seconds(self, model: str) -> float:
        """How long the model's pause still lasts; 0 if there is none."""
