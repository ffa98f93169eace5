"""Faults on demand: which request goes wrong, and how."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

from simulator.conversation import Conversation
from simulator.wire import Reply, error_reply

KINDS = {
    "rate_limited": "429 rate_limit_error with retry-after",
    "ramp_limited": "429 with error code ramp_limit_exceeded and retry-after",
    "spend_limit": "429 with error code enforced_spend_limit_reached",
    "billing": "402 billing_error",
    "overloaded": "529 overloaded_error",
    "server_error": "500 api_error",
    "unavailable": "503 api_error",
    "unauthorized": "401 authentication_error",
    "forbidden": "403 permission_error",
    "not_found": "404 not_found_error",
    "too_large": "413 request_too_large",
    "prompt_too_long": "400 invalid_request_error",
    "cut": "the connection is closed in the middle of the answer",
    "stream_error": "an error event in the middle of a stream",
    "slow": "the answer comes `seconds` later",
    "hang": "the answer never comes; the connection stays open",
    "malformed": "200 with a structured answer (or a body or an event of a stream, if `body` is true) that is no JSON",
    "refusal": "stop_reason refusal",
    "max_tokens": "stop_reason max_tokens, half of the text",
    "context_exceeded": "stop_reason model_context_window_exceeded",
    "pause_turn": "stop_reason pause_turn",
}

STATUS = {
    "rate_limited": (429, "rate_limit_error", "this request would exceed your rate limit", None),
    "ramp_limited": (429, "rate_limit_error", "usage grows too fast", "ramp_limit_exceeded"),
    "spend_limit": (429, "rate_limit_error", "the spend limit is reached", "enforced_spend_limit_reached"),
    "billing": (402, "billing_error", "the credit balance is too low", None),
    "overloaded": (529, "overloaded_error", "overloaded", None),
    "server_error": (500, "api_error", "internal server error", None),
    "unavailable": (503, "api_error", "service unavailable", None),
    "unauthorized": (401, "authentication_error", "invalid api key", None),
    "forbidden": (403, "permission_error", "this key may not do that", None),
    "not_found": (404, "not_found_error", "model not found", None),
    "too_large": (413, "request_too_large", "the request is too large", None),
    "prompt_too_long": (400, "invalid_request_error", "prompt is too long: 250000 tokens > 200000 maximum", None),
}

STOP_REASONS = {
    "refusal": "refusal",
    "max_tokens": "max_tokens",
    "context_exceeded": "model_context_window_exceeded",
    "pause_turn": "pause_turn",
}


@dataclass(frozen=True)
class Match:
    """Which requests something is for; what is None matches all."""

    prompt: str | None = None  # part of the first user message, any case
    arm: str | None = None  # with_skill or without_skill: whether a skill is offered
    contains: str | None = None  # part of anything said so far
    kind: str | None = None  # agent, judge, plain
    run: str | None = None  # part of the header x-assay-run
    turn: int | None = None  # the model's n-th answer, from 0
    skill: str | None = None  # which skill decides the arm; any when None

    def fits(self, asked: Conversation) -> bool:
        """Whether this request is meant."""
        return (
            _part(self.prompt, asked.prompt)
            and _part(self.contains, asked.text)
            and _part(self.run, asked.run)
            and self.kind in (None, asked.kind)
            and self.turn in (None, asked.turn)
            and self.arm in (None, "with_skill" if asked.offers(self.skill) else "without_skill")
        )


@dataclass
class Fault:
    """One way to go wrong, for some requests, some times."""

    kind: str
    match: Match = field(default_factory=Match)
    times: int | None = None  # how often; None: always
    skip: int = 0  # so many matching requests pass first
    rate: float = 1.0  # share of the matching requests
    retry_after: float | None = None
    seconds: float = 0.0
    body: bool = False  # malformed: break the body, not only the structured answer
    should_retry: bool | None = None  # sent as x-should-retry

    def strikes(self, asked: Conversation, number: int) -> bool:
        """Whether request `number` is hit; counts down."""
        if self.times == 0 or not self.match.fits(asked) or not self._drawn(number):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.times is not None:
            self.times -= 1
        return True

    def _drawn(self, number: int) -> bool:
        if self.rate >= 1.0:
            return True
        draw = int.from_bytes(hashlib.sha256(f"{self.kind}:{number}".encode()).digest()[:4], "big")
        return draw / 2**32 < self.rate

    def reply(self) -> Reply | None:
        """The error answer of this fault, or None when it is no error status."""
        if self.kind not in STATUS:
            return None
        status, kind, message, code = STATUS[self.kind]
        headers: dict[str, str] = {}
        if self.retry_after is not None:
            headers["retry-after"] = f"{self.retry_after:g}"
        if self.should_retry is not None:
            headers["x-should-retry"] = "true" if self.should_retry else "false"
        return error_reply(status, kind, message, headers=headers, error_code=code)


def _part(wanted: str | None, text: str) -> bool:
    return wanted is None or wanted.lower() in text.lower()


def read_match(value: dict[str, Any], skill: str | None = None) -> Match:
    """A match from its JSON form; raises ValueError."""
    try:
        return Match(**{"skill": skill, **value})
    except TypeError as error:
        raise ValueError(f"match: {error}") from error


def read_fault(value: dict[str, Any], skill: str | None = None) -> Fault:
    """A fault from its JSON form; raises ValueError."""
    kind = value.get("kind")
    if kind not in KINDS:
        raise ValueError(f"fault kind {kind!r} is unknown; choose one of {', '.join(KINDS)}")
    rest = {key: item for key, item in value.items() if key not in ("kind", "match")}
    try:
        return Fault(kind, read_match(value.get("match") or {}, skill), **rest)
    except TypeError as error:
        raise ValueError(f"fault {kind}: {error}") from error
