"""What a stage asks of a model, and what others may plug in around it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from service.errors import StageFailed, Unavailable
from service.limits.port import Purpose


class RequestRefused(StageFailed):
    """The provider will not take this request, however often it is sent: 400 or 413."""


class SpendLimit(Unavailable):
    """The provider's spend limit is reached: pause the team's batches, trying again burns nothing but time."""

    def __init__(self, team: str, message: str) -> None:
        self.team = team
        super().__init__(message)


@dataclass(frozen=True)
class Tokens:
    """Tokens of one call by kind, as billed; `cache_write_1h` is part of `cache_write`."""

    input: int = 0
    output: int = 0
    cache_read: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0

    @property
    def total(self) -> int:
        """All kinds together."""
        return self.input + self.output + self.cache_read + self.cache_write

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(
            self.input + other.input,
            self.output + other.output,
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.cache_write_1h + other.cache_write_1h,
        )


@dataclass(frozen=True)
class Call:
    """One question to a model; `params` is the body of a Messages API request, without `stream`."""

    params: Mapping[str, Any]
    purpose: Purpose
    team: str = "default"
    batch_id: str | None = None
    run_id: int | None = None
    label: str = ""  # sent as x-assay-run: tells gateways and the simulator which run asks; "" sends none
    input_tokens: int | None = None  # estimate for limiter and budget; None: from the size of the body
    timeout_seconds: float = 600.0  # for the whole call, waits and retries included
    is_cancelled: Callable[[], bool] = field(default=lambda: False)  # asked before each try

    @property
    def model(self) -> str:
        """The model asked."""
        return str(self.params["model"])

    @property
    def max_tokens(self) -> int:
        """The most it may answer."""
        return int(self.params["max_tokens"])


@dataclass(frozen=True)
class Answer:
    """What the model said; `content` are blocks that can be sent back as they are."""

    id: str
    model: str
    content: tuple[dict[str, Any], ...]
    stop_reason: str
    tokens: Tokens
    cost_usd: float | None  # None: the price of this model is not known
    seconds: float  # of the try that was answered
    request_id: str | None
    simulated: bool
    attempts: int = 1
    stop_details: Mapping[str, Any] | None = None

    @property
    def text(self) -> str:
        """All text blocks together."""
        return "".join(str(block["text"]) for block in self.content if block.get("type") == "text")


@dataclass(frozen=True)
class Attempt:
    """One HTTP request, after it: what limiter and budget learn from it."""

    number: int  # 1 is the first
    status: int | None  # None: there was no answer
    headers: Mapping[str, str]  # of the answer, names in lower case
    tokens: Tokens | None  # None: not answered in full; it may have been billed all the same
    cost_usd: float | None
    seconds: float
    error: str | None = None  # short name of what went wrong
    retry_after_seconds: float | None = None


class Hook(Protocol):
    """Stands around every HTTP request, in the caller's thread; `after` follows every `before` that returned."""

    def before(self, call: Call, number: int) -> None:
        """May wait; raises RetryLater or StageFailed (over budget) to keep the request from leaving."""

    def after(self, call: Call, attempt: Attempt) -> None:
        """The request has ended, one way or the other."""


@dataclass(frozen=True)
class ModelCall:
    """One row of the ledger: a call, answered or given up."""

    team: str
    batch_id: str | None
    run_id: int | None
    purpose: Purpose
    model: str  # as asked
    answered_by: str | None  # as the answer says
    tokens: Tokens | None
    cost_usd: float | None
    seconds: float
    request_id: str | None
    simulated: bool
    attempts: int
    lane: str = "direct"  # or batch, at half the price
    error: str | None = None


class Ledger(Protocol):
    """Keeps what was spent; safe to use from many threads."""

    def record(self, call: ModelCall) -> None:
        """Write one row."""


class Models(Protocol):
    """What stages use."""

    def complete(self, call: Call) -> Answer:
        """One answer, sent at once; for short answers such as a judge's."""

    def stream(self, call: Call) -> Answer:
        """The same, received as a stream; for answers that take minutes."""
