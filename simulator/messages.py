"""The endpoints under /v1/messages: check, count, strike or answer."""

import asyncio
import json
from typing import Any

from simulator.answers import Model
from simulator.caching import PromptCache, blocks_of
from simulator.conversation import Conversation
from simulator.draw import drawn
from simulator.faults import Fault
from simulator.limiter import RateLimit
from simulator.rules import Refused, check_request
from simulator.script import read_script
from simulator.settings import Settings
from simulator.sse import streamed
from simulator.stats import Stats
from simulator.wire import Reply, Request, error_reply, json_reply

HANG_SECONDS = 3600.0


class Messages:
    """Answers messages; holds what outlives a request: model, prompt cache, faults, limits."""

    def __init__(self, settings: Settings, stats: Stats) -> None:
        self.stats = stats
        self.settings = settings
        self.added: list[Fault] = []  # by /control/faults; they strike before the script's own
        self._take_script(settings)
        self.cache = PromptCache(settings.cache_minimum_tokens)
        self.limit = RateLimit(settings.requests_per_minute, settings.tokens_per_minute)

    def apply(self, settings: Settings) -> None:
        """Take new settings; the cache stays warm, and a script or a limit starts anew only when it changed."""
        old, self.settings = self.settings, settings
        if (old.script, old.seed) != (settings.script, settings.seed):
            self._take_script(settings)
        limits = (settings.requests_per_minute, settings.tokens_per_minute)
        if (old.requests_per_minute, old.tokens_per_minute) != limits:
            self.limit = RateLimit(settings.requests_per_minute, settings.tokens_per_minute)
        self.cache.minimum_tokens = settings.cache_minimum_tokens

    def _take_script(self, settings: Settings) -> None:
        script = read_script(settings.script)
        self.model = Model(script, settings.seed)
        self.scripted = list(script.faults)

    async def create(self, request: Request) -> Reply:
        """POST /v1/messages."""
        asked = _conversation(request)
        check_request(asked, request.headers.get("anthropic-version", ""))
        self.stats.note_body(request.body)
        self.stats.by_model[asked.model] += 1
        self.stats.by_kind[asked.kind] += 1
        number = self.stats.requests
        wait = self.limit.take()
        if wait is not None:
            self.stats.faults["over_limit"] += 1
            headers = {"retry-after": str(int(wait) + 1)}
            return error_reply(429, "rate_limit_error", "this request would exceed your rate limit", headers=headers)
        fault = self.strike(asked, number)
        await asyncio.sleep(self._latency(number) + _delay(fault))
        return (fault.reply() if fault else None) or self._answer(asked, fault)

    def strike(self, asked: Conversation, number: int) -> Fault | None:
        """The fault that hits this request, if any; counted."""
        for fault in [*self.added, *self.scripted]:
            if fault.strikes(asked, number):
                self.stats.faults[fault.kind] += 1
                return fault
        return None

    def _latency(self, number: int) -> float:
        least, most = self.settings.latency_seconds
        return least if least == most else drawn(self.settings.seed, "latency", number).uniform(least, most)

    def _answer(self, asked: Conversation, fault: Fault | None) -> Reply:
        blocks = blocks_of(asked.body)
        used = self.cache.count(blocks)
        if used.total > self.settings.context_window_tokens:
            raise Refused(f"prompt is too long: {used.total} tokens > {self.settings.context_window_tokens} maximum")
        self.cache.warm(blocks)
        message = self.model.answer(asked, fault)
        kind = fault.kind if fault and (fault.kind != "malformed" or fault.body) else None
        if kind not in ("cut", "stream_error", "malformed"):
            self.stats.note_answer(used, message.output_tokens)
        if asked.body.get("stream"):
            return Reply(200, headers={"content-type": "text/event-stream"}, pieces=streamed(message, used, kind))
        return _plain_reply(message.as_json(used), fault)

    def batch_result(self, params: dict[str, Any]) -> dict[str, Any]:
        """One result of a message batch: the same model, faults as errored results."""
        asked = Conversation(params)
        try:
            check_request(asked, "")
        except Refused as refused:
            return _errored("invalid_request_error", str(refused))
        fault = self.strike(asked, self.stats.requests)
        if fault and fault.reply():
            return _errored("api_error", fault.kind)
        blocks = blocks_of(params)
        used = self.cache.count(blocks)
        message = self.model.answer(asked, fault)
        self.stats.note_answer(used, message.output_tokens)
        return {"type": "succeeded", "message": message.as_json(used, "batch")}

    async def count_tokens(self, request: Request) -> Reply:
        """POST /v1/messages/count_tokens."""
        asked = _conversation(request)
        return json_reply(200, {"input_tokens": self.cache.count(blocks_of(asked.body)).total})


def _conversation(request: Request) -> Conversation:
    try:
        body = request.json()
    except ValueError as error:
        raise Refused(f"the body is no JSON: {error}") from error
    if not isinstance(body, dict):
        raise Refused("the body is no JSON object")
    return Conversation(body, request.headers.get("x-assay-run", ""))


def _delay(fault: Fault | None) -> float:
    return 0.0 if fault is None else HANG_SECONDS if fault.kind == "hang" else fault.seconds


def _plain_reply(message: dict[str, Any], fault: Fault | None) -> Reply:
    body = json.dumps(message).encode()
    headers = {"content-type": "application/json"}
    if fault and fault.kind in ("cut", "stream_error"):
        return Reply(200, body, {**headers, "x-cut": "1"})
    if fault and fault.kind == "malformed" and fault.body:
        return Reply(200, body[: len(body) // 2], headers)
    return Reply(200, body, headers)


def _errored(kind: str, message: str) -> dict[str, Any]:
    error = {"type": "error", "error": {"type": kind, "message": message}, "request_id": None}
    return {"type": "errored", "error": error}
