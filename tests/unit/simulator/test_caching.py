"""Prompt caching, counted as the API counts it."""

from typing import Any

from simulator.caching import PromptCache, blocks_of

STABLE = "stable words " * 40
MARK = {"type": "ephemeral"}


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def body(*texts: str, marked: int | None = None, ttl: str | None = None) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text} for text in texts]
    if marked is not None:
        blocks[marked]["cache_control"] = MARK if ttl is None else {**MARK, "ttl": ttl}
    return {"model": "m", "messages": [{"role": "user", "content": blocks}]}


def test_without_a_breakpoint_all_input_is_fresh() -> None:
    cache = PromptCache(10)

    used = cache.count(blocks_of(body(STABLE)))

    assert used.fresh == used.total > 100
    assert (used.read, used.written_5m, used.written_1h) == (0, 0, 0)


def test_the_second_request_with_the_same_prefix_reads_what_the_first_wrote() -> None:
    cache = PromptCache(10)
    first = blocks_of(body(STABLE, "question one", marked=0))
    written = cache.count(first)
    cache.warm(first)

    read = cache.count(blocks_of(body(STABLE, "another question", marked=0)))

    assert written.written_5m > 100
    assert written.read == 0
    assert read.read == written.written_5m
    assert read.written_5m == 0
    assert read.fresh > 0


def test_a_breakpoint_that_moves_on_still_finds_the_older_prefix() -> None:
    cache = PromptCache(10)
    cache.warm(blocks_of(body(STABLE, marked=0)))

    used = cache.count(blocks_of(body(STABLE, "turn one", "turn two", marked=2)))

    assert used.read == cache.count(blocks_of(body(STABLE, marked=0))).read > 0
    assert used.written_5m > 0


def test_a_prefix_below_the_minimum_is_silently_not_cached() -> None:
    cache = PromptCache(10_000)
    blocks = blocks_of(body(STABLE, marked=0))
    cache.warm(blocks)

    used = cache.count(blocks)

    assert used.fresh == used.total


def test_a_prefix_cools_down_after_its_time() -> None:
    clock = Clock()
    cache = PromptCache(10, clock)
    short, long = blocks_of(body(STABLE, marked=0)), blocks_of(body(STABLE + "x", marked=0, ttl="1h"))
    cache.warm(short)
    cache.warm(long)

    clock.now = 400.0

    assert cache.count(short).read == 0
    assert cache.count(long).read > 0


def test_a_changed_word_in_the_prefix_misses() -> None:
    cache = PromptCache(10)
    cache.warm(blocks_of(body(STABLE, marked=0)))

    assert cache.count(blocks_of(body("X" + STABLE, marked=0))).read == 0
