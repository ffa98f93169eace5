"""How often a call is tried, what happens around each try, and what is written down."""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.states import Outcome
from service.errors import StageFailed
from service.models.failures import Failure, failure_of, malformed, timed_out
from service.models.port import Answer, Attempt, Call, Hook, Ledger, ModelCall, Tokens
from service.models.prices import Prices

SIMULATED_HEADER = "x-assay-simulated"
_LONGEST_PAUSE_SECONDS = 8.0


@dataclass(frozen=True)
class Received:
    """A message as the API sent it, with the headers of the answer."""

    message: Mapping[str, Any]
    headers: Mapping[str, str]


@dataclass(frozen=True)
class Patience:
    """How long we put up with a provider."""

    max_retries: int = 2  # tries after the first
    retry_after_cap_seconds: float = 30.0  # a longer wait is handed back to the queue
    first_pause_seconds: float = 0.5  # doubled from try to try


Send = Callable[[Call, float], Received]  # one HTTP request with so many seconds left


class Attempts:
    """Tries calls; safe to use from many threads."""

    def __init__(
        self,
        patience: Patience,
        prices: Prices,
        hooks: Sequence[Hook] = (),
        ledger: Ledger | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._patience = patience
        self._prices = prices
        self.hooks = tuple(hooks)
        self._ledger = ledger
        self._sleep = sleep

    def ask(self, call: Call, send: Send) -> Answer:
        """The answer; raises RetryLater, SpendLimit or StageFailed, and repeats no further than allowed."""
        deadline = time.monotonic() + call.timeout_seconds
        number = 1
        while True:
            result = self._once(call, send, number, deadline)
            if isinstance(result, Answer):
                self.write_down(call, result, None, number)
                return result
            pause = self.pause(result, number)
            if pause is None or time.monotonic() + pause >= deadline:
                self.write_down(call, None, result, number)
                raise result.as_error(call)
            self._sleep(pause)
            number += 1

    def _once(self, call: Call, send: Send, number: int, deadline: float) -> Answer | Failure:
        if call.is_cancelled():
            raise StageFailed(Outcome.CANCELLED, "the run was stopped before the model was asked")
        entered: list[Hook] = []
        started = time.monotonic()
        attempt = Attempt(number, None, {}, None, None, 0.0, "not_sent")
        try:
            for hook in self.hooks:
                hook.before(call, number)
                entered.append(hook)
            started = time.monotonic()
            result, attempt = self._sent(call, send, number, deadline)
            return result
        except TimeoutError:
            seconds = time.monotonic() - started
            attempt = Attempt(number, None, {}, None, None, seconds, "timeout")
            self.write_down(call, None, Failure("timeout", "", False), number, seconds)
            raise timed_out(call) from None
        finally:
            for hook in reversed(entered):
                hook.after(call, attempt)

    def _sent(self, call: Call, send: Send, number: int, deadline: float) -> tuple[Answer | Failure, Attempt]:
        started = time.monotonic()
        left = deadline - started
        if left <= 0:
            raise TimeoutError
        try:
            received = send(call, left)
            answer = self._answer(call, received, time.monotonic() - started, number)
        except TimeoutError:
            raise
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                raise
            return failure, _failed(number, failure, time.monotonic() - started)
        return answer, Attempt(number, 200, received.headers, answer.tokens, answer.cost_usd, answer.seconds)

    def _answer(self, call: Call, received: Received, seconds: float, number: int) -> Answer:
        try:
            return self._read(call, received, seconds, number)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise malformed(received.headers) from error

    def _read(self, call: Call, received: Received, seconds: float, number: int) -> Answer:
        """The answer in a message; raises one of many errors if it has not the shape of one."""
        message = received.message
        tokens = tokens_of(message["usage"])
        return Answer(
            id=str(message["id"]),
            model=str(message["model"]),
            content=tuple(dict(block) for block in message["content"]),
            stop_reason=_word(message["stop_reason"]),
            tokens=tokens,
            cost_usd=self._prices.cost(call.model, tokens),
            seconds=seconds,
            request_id=received.headers.get("request-id"),
            simulated=received.headers.get(SIMULATED_HEADER) == "1",
            attempts=number,
            stop_details=message.get("stop_details"),
        )

    def pause(self, failure: Failure, number: int) -> float | None:
        """How long to wait before the next try; None: there is none."""
        if not failure.is_retryable or number > self._patience.max_retries:
            return None
        if failure.retry_after_seconds is not None:
            asked = failure.retry_after_seconds
            return asked if asked <= self._patience.retry_after_cap_seconds else None
        longest = min(_LONGEST_PAUSE_SECONDS, self._patience.first_pause_seconds * float(2 ** (number - 1)))
        return longest * random.uniform(0.75, 1.0)  # noqa: S311 - spreads tries, hides nothing

    def write_down(
        self, call: Call, answer: Answer | None, failure: Failure | None, number: int, seconds: float = 0.0
    ) -> None:
        """One row of the ledger, for a call that was answered or given up."""
        if self._ledger is None:
            return
        headers = failure.headers if failure else {}
        row = ModelCall(
            team=call.team,
            batch_id=call.batch_id,
            run_id=call.run_id,
            purpose=call.purpose,
            model=call.model,
            answered_by=answer.model if answer else None,
            tokens=answer.tokens if answer else None,
            cost_usd=answer.cost_usd if answer else None,
            seconds=answer.seconds if answer else seconds,
            request_id=answer.request_id if answer else headers.get("request-id"),
            simulated=answer.simulated if answer else headers.get(SIMULATED_HEADER) == "1",
            attempts=number,
            error=failure.kind if failure else None,
        )
        self._ledger.record(row)


def tokens_of(usage: Mapping[str, Any]) -> Tokens:
    """Tokens by kind from the API's usage; what it leaves out is 0."""
    written = usage.get("cache_creation") or {}
    return Tokens(
        input=int(usage.get("input_tokens") or 0),
        output=int(usage.get("output_tokens") or 0),
        cache_read=int(usage.get("cache_read_input_tokens") or 0),
        cache_write=int(usage.get("cache_creation_input_tokens") or 0),
        cache_write_1h=int(written.get("ephemeral_1h_input_tokens") or 0),
    )


def _word(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("no word stands where one must")
    return value


def _failed(number: int, failure: Failure, seconds: float) -> Attempt:
    return Attempt(
        number, failure.status, failure.headers, None, None, seconds, failure.kind, failure.retry_after_seconds
    )
