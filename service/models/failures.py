"""What an exception of the SDK means: try again, hand back, pause the team, or end the run in a named outcome.

429 with retry-after within the cap, 529, 503 with retry-after             try again, so many times, then RetryLater
the same with a longer retry-after                                         RetryLater with that time
5xx, 408, 409, connection cut, an error event in the stream,
an answer that is no JSON                                                  try again, so many times, then Unavailable
429 enforced_spend_limit_reached, billing_error                            SpendLimit
400 prompt is too long, 413, other 400                                     executor_error or judge_error
401, 403, 404                                                              infra_error: the installation is wrong
the call's own deadline                                                    timeout
"""

import email.utils
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from schemas.states import Outcome
from service.errors import AssayError, StageFailed, Unavailable
from service.limits.port import Purpose, RetryLater
from service.models.port import Call, RequestRefused, SpendLimit

if TYPE_CHECKING:
    from anthropic import APIStatusError

_RETRYABLE_STATUS = frozenset({408, 409, 429})
_BUSY_STATUS = frozenset({429, 529})
_RETRYABLE_TYPES = frozenset({"overloaded_error", "api_error", "rate_limit_error", "timeout_error"})
_BUSY_KINDS = frozenset({"rate_limit_error", "ramp_limit_exceeded", "overloaded_error"})
_BUSY_SECONDS = 15.0  # for a busy model that does not say how long
_SPENT = frozenset({"enforced_spend_limit_reached", "billing_error"})
_REMEDIES = {
    401: "the provider refused the key; set ANTHROPIC_API_KEY",
    403: "the key may not use this model; choose another model or key",
    404: "the provider does not know this model; choose another",
}


@dataclass(frozen=True)
class Failure:
    """One request that went wrong."""

    kind: str  # short name, for ledger and log
    detail: str  # for people; never the request
    is_retryable: bool
    status: int | None = None
    retry_after_seconds: float | None = None
    request_id: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_busy(self) -> bool:
        """Whether the model is well and only has no time for us; more tries may not mend a broken one."""
        told_when = self.status == 503 and self.retry_after_seconds is not None
        return self.is_retryable and (self.kind in _BUSY_KINDS or self.status in _BUSY_STATUS or told_when)

    def as_error(self, call: Call) -> AssayError:
        """What is raised when it is not tried again."""
        if self.kind in _SPENT:
            return SpendLimit(call.team, f"the spend limit of the provider is reached for {call.model}: {self.detail}")
        if self.is_busy:
            seconds = _BUSY_SECONDS if self.retry_after_seconds is None else self.retry_after_seconds
            return RetryLater(seconds, f"model {call.model} is busy ({self.kind}); again in {seconds:.0f} s")
        if self.is_retryable:
            return Unavailable(f"model {call.model} does not answer ({self.kind}: {self.detail})")
        if self.status in _REMEDIES:
            words = f"{_REMEDIES[self.status]} ({call.model}: {self.detail})"
            return StageFailed(Outcome.INFRA_ERROR, words)
        return RequestRefused(error_outcome(call.purpose), f"model {call.model} refused the request: {self.detail}")


class Malformed(ValueError):
    """Bytes or JSON that are no answer of the Messages API."""


class StreamFailed(Exception):
    """An answer began well, with status 200, and told of an error or could not be read in its middle."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.detail)


def malformed(headers: Mapping[str, str]) -> StreamFailed:
    """An answer that cannot be read; it may have been billed all the same."""
    lowered = {name.lower(): value for name, value in headers.items()}
    words = "the answer is none that can be read"
    request_id = lowered.get("request-id")
    return StreamFailed(Failure("malformed", words, True, 200, None, request_id, lowered))


def error_outcome(purpose: Purpose) -> Outcome:
    """The outcome of a run whose stage broke."""
    return Outcome.EXECUTOR_ERROR if purpose is Purpose.EXECUTE else Outcome.JUDGE_ERROR


def timed_out(call: Call) -> StageFailed:
    """The call's own deadline has passed."""
    words = f"model {call.model} did not answer within {call.timeout_seconds:.0f} s"
    return StageFailed(Outcome.TIMEOUT, words)


def failure_of(error: Exception) -> Failure | None:
    """What went wrong, or None for an exception that is no affair of the model's."""
    import anthropic
    import httpx2

    if isinstance(error, StreamFailed):
        return error.failure
    if isinstance(error, anthropic.APIStatusError):
        return _of_status(error)
    if isinstance(error, anthropic.APIConnectionError | httpx2.TransportError | ConnectionError):
        return Failure("connection", "the connection failed or was cut", True)
    if isinstance(error, anthropic.APIResponseValidationError | ValueError):
        return Failure("malformed", "the answer is no JSON that can be read", True)
    if isinstance(error, anthropic.APIError | httpx2.HTTPError):
        return Failure(type(error).__name__, "the answer cannot be read", True)
    return None


def _of_status(error: "APIStatusError") -> Failure:
    said = {"type": error.type, "message": error.api_message, "details": {"error_code": error.error_code}}
    return failure_of_answer(error.status_code, error.response.headers, said)


def failure_of_answer(status: int, headers: Mapping[str, str], error: Mapping[str, Any]) -> Failure:
    """What an error answer means; `error` is the object of that name in its body."""
    lowered = {name.lower(): value for name, value in headers.items()}
    kind = str((error.get("details") or {}).get("error_code") or error.get("type") or f"http_{status}")
    told = str(error.get("message") or error.get("type") or "no reason given")[:300]
    # An error event inside a stream comes with the status of the stream, 200: its type decides.
    is_retryable = status in _RETRYABLE_STATUS or status >= 500
    is_retryable = is_retryable or (status < 400 and error.get("type") in _RETRYABLE_TYPES)
    return Failure(
        kind=kind,
        detail=f"{told} (http {status})",
        is_retryable=is_retryable and kind not in _SPENT,
        status=status,
        retry_after_seconds=retry_after(lowered),
        request_id=lowered.get("request-id"),
        headers=lowered,
    )


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds a server asks us to wait: retry-after-ms, or retry-after as a number or a date."""
    milliseconds, told = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds:
            return max(0.0, float(milliseconds) / 1000)
        return max(0.0, float(told)) if told else None
    except ValueError:
        moment = email.utils.parsedate_tz(told or "")
        return max(0.0, email.utils.mktime_tz(moment) - time.time()) if moment else None
