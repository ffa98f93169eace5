"""Prompt caching as the API does it: a prefix match over tools, system and messages, at most four breakpoints."""

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

LOOK_BACK_BLOCKS = 20  # how far before a breakpoint an older entry is found
TTL_SECONDS = {"5m": 300.0, "1h": 3600.0}
MAX_ENTRIES = 100_000


@dataclass(frozen=True)
class Block:
    """One piece of a prompt: the digest of the prompt up to its end, its own tokens, the breakpoint it may carry."""

    digest: str
    tokens: int
    ttl: str | None


@dataclass(frozen=True)
class InputUsage:
    """How the input tokens of one request are counted."""

    fresh: int
    read: int
    written_5m: int
    written_1h: int

    @property
    def total(self) -> int:
        """All input tokens."""
        return self.fresh + self.read + self.written_5m + self.written_1h


def tokens_in(value: Any) -> int:
    """About four characters to a token; stable, and never 0 for something."""
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    return (len(text) + 3) // 4


def blocks_of(body: dict[str, Any]) -> list[Block]:
    """The prompt's blocks in cache order, each with the digest of its whole prefix."""
    digest = hashlib.sha256(str(body.get("model")).encode())
    blocks: list[Block] = []
    for block in _pieces(body):
        bare = {key: value for key, value in block.items() if key != "cache_control"}
        digest.update(json.dumps(bare, sort_keys=True).encode())
        mark = block.get("cache_control") or {}
        blocks.append(Block(digest.hexdigest(), tokens_in(bare), mark.get("ttl", "5m") if mark else None))
    if body.get("cache_control") and blocks:
        last = blocks[-1]
        blocks[-1] = Block(last.digest, last.tokens, body["cache_control"].get("ttl", "5m"))
    return blocks


def _pieces(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield from body.get("tools") or []
    system = body.get("system") or []
    yield from [{"type": "text", "text": system}] if isinstance(system, str) else system
    for message in body.get("messages") or []:
        content = message.get("content") or ""
        for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
            yield {"role": message.get("role"), **block}


class PromptCache:
    """Which prefixes are warm. A prefix is warm only after a request that wrote it was answered."""

    def __init__(self, minimum_tokens: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.minimum_tokens = minimum_tokens
        self._clock = clock
        self._warm: dict[str, float] = {}  # digest of a prefix: until when

    def count(self, blocks: list[Block]) -> InputUsage:
        """How this request's input is counted now; changes nothing."""
        total = sum(block.tokens for block in blocks)
        marks = self._marks(blocks)
        if not marks:
            return InputUsage(total, 0, 0, 0)
        upto = _tokens_through(blocks, marks[-1])
        read = self._warm_tokens(blocks, marks)
        written = upto - read
        long = blocks[marks[-1]].ttl == "1h"
        return InputUsage(total - upto, read, 0 if long else written, written if long else 0)

    def warm(self, blocks: list[Block]) -> None:
        """Remember this request's prefixes up to each breakpoint."""
        now = self._clock()
        if len(self._warm) > MAX_ENTRIES:
            self._warm = {digest: until for digest, until in self._warm.items() if until > now}
        for mark in self._marks(blocks):
            block = blocks[mark]
            self._warm[block.digest] = now + TTL_SECONDS.get(block.ttl or "5m", 300.0)

    def _marks(self, blocks: list[Block]) -> list[int]:
        marked = [index for index, block in enumerate(blocks) if block.ttl]
        return [index for index in marked if _tokens_through(blocks, index) >= self.minimum_tokens]

    def _warm_tokens(self, blocks: list[Block], marks: list[int]) -> int:
        now = self._clock()
        for mark in reversed(marks):
            for index in range(mark, max(-1, mark - LOOK_BACK_BLOCKS), -1):
                if self._warm.get(blocks[index].digest, 0.0) > now:
                    return _tokens_through(blocks, index)
        return 0


def _tokens_through(blocks: list[Block], index: int) -> int:
    return sum(block.tokens for block in blocks[: index + 1])
