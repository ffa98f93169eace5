"""What judging is made of: an answer, one seat's judgement, where judgements are kept, and what a run gets.

JudgeFailed (judge_error)   reason: malformed, ids, truncated, refusal, too_long, control
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from schemas.base import Word
from schemas.grading import Grading
from schemas.states import Outcome
from service.errors import StageFailed
from service.judging.request import JudgeRequest
from service.judging.verdict import Verdict
from service.limits.port import RetryLater


class JudgeFailed(StageFailed):
    """The judge gave no usable answer; `reason` is one word for counting."""

    def __init__(self, reason: str, message: str) -> None:
        self.reason = reason
        super().__init__(Outcome.JUDGE_ERROR, f"judge_error: {reason}: {message}")


class InLane(RetryLater):
    """The judgement is on its way at half the price; come back later."""


class TokensUsed(Word):
    """Tokens of one or more calls, by kind."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0

    def plus(self, other: "TokensUsed") -> "TokensUsed":
        """The sum."""
        return TokensUsed(**{name: value + getattr(other, name) for name, value in self.model_dump().items()})

    @property
    def total(self) -> int:
        """All kinds together."""
        return self.input + self.output + self.cache_read + self.cache_write


@dataclass(frozen=True)
class JudgeAnswer:
    """What a model said to one request."""

    text: str
    stop_reason: str = "end_turn"
    tokens: TokensUsed = field(default_factory=TokensUsed)
    seconds: float = 0.0
    cost_usd: float | None = 0.0  # None: the price of the model is not known
    answered_by: str | None = None  # the model that says it answered
    simulated: bool = False  # the answer itself says that a simulator gave it


Ask = Callable[[JudgeRequest], JudgeAnswer]


class SlotJudgement(Word):
    """One seat's verdict on one run: paid for once, kept under its id."""

    id: str
    model: str
    number: int
    repeat: int
    prompt_version: str
    verdict: Verdict
    tokens: TokensUsed = TokensUsed()
    seconds: float = 0.0
    cost_usd: float | None = 0.0  # None: the price of the model is not known
    calls: int = 1
    simulated: bool = False  # a simulator had part in it
    natives_left_out: bool = False  # the model refused images and PDFs, and judged without them


class FirstAnswer(Word):
    """An unusable answer to a request; only its repair is still to be asked for."""

    id: str  # of the judgement that it is to become
    model: str
    prompt_version: str
    natives_left_out: bool = False
    answer: JudgeAnswer


class JudgementStore(Protocol):
    """Keeps judgements by id."""

    def get(self, judgement_id: str) -> SlotJudgement | FirstAnswer | None:
        """The judgement, if it was made before; or the answer that is still to be repaired."""

    def put_first(self, first: FirstAnswer) -> None:
        """Keep an unusable answer whose repair has to wait: it is paid for."""

    def put(self, judgement: SlotJudgement) -> None:
        """Keep it; a second one under the same id changes nothing."""


@dataclass(frozen=True)
class Judgement:
    """Everything that came out of judging one run."""

    grading: Grading
    slots: tuple[SlotJudgement, ...]
    rejudged: tuple[Grading, ...] = ()  # the same run judged once more, if it was in the sample
    rejudge_failed: str | None = None  # why it was not, though it was in the sample
    paid: tuple[SlotJudgement, ...] = ()  # those that were asked for now, not found in the store

    @property
    def simulated(self) -> bool:
        """Whether a simulator judged, now or when the judgement was kept."""
        return any(slot.simulated for slot in self.slots)

    @property
    def tokens(self) -> TokensUsed:
        """What this judging used, without what was found."""
        total = TokensUsed()
        for slot in self.paid:
            total = total.plus(slot.tokens)
        return total

    @property
    def cost_usd(self) -> float | None:
        """What this judging cost; None when a price is not known."""
        return total_cost([slot.cost_usd for slot in self.paid])

    @property
    def seconds(self) -> float:
        """How long the judges took, whenever that was."""
        return sum(slot.seconds for slot in self.slots)


def total_cost(costs: Sequence[float | None]) -> float | None:
    """The sum; None when one of them is not known."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None
