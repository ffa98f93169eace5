"""A message as the API streams it: server-sent events."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

from simulator.answers import Message, usage_json
from simulator.caching import InputUsage
from simulator.wire import Cut

PIECES = 3


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()


def events(message: Message, used: InputUsage) -> Iterator[bytes]:
    """All events of a message, in order."""
    start = message.as_json(used)
    start.update(content=[], stop_reason=None, stop_details=None, usage=usage_json(used, 1))
    yield _event("message_start", message=start)
    yield _event("ping")
    for index, block in enumerate(message.content):
        yield from _block_events(index, block)
    delta = {"stop_reason": message.stop_reason, "stop_sequence": None, "stop_details": message.stop_details}
    yield _event("message_delta", delta=delta, usage={"output_tokens": message.output_tokens})
    yield _event("message_stop")


def _block_events(index: int, block: dict[str, Any]) -> Iterator[bytes]:
    for kind, key, empty, delta, part in (
        ("text", "text", "", "text_delta", "text"),
        ("thinking", "thinking", "", "thinking_delta", "thinking"),
        ("tool_use", "input", {}, "input_json_delta", "partial_json"),
    ):
        if block["type"] == kind:
            yield _event("content_block_start", index=index, content_block=_opening(block, key, empty))
            text = block[key] if isinstance(block[key], str) else json.dumps(block[key])
            for piece in _split(text):
                yield _event("content_block_delta", index=index, delta={"type": delta, part: piece})
            if kind == "thinking":
                signature = {"type": "signature_delta", "signature": block["signature"]}
                yield _event("content_block_delta", index=index, delta=signature)
            yield _event("content_block_stop", index=index)


def _opening(block: dict[str, Any], key: str, empty: Any) -> dict[str, Any]:
    return {**block, key: empty, **({"signature": ""} if block["type"] == "thinking" else {})}


def _split(text: str) -> list[str]:
    size = max(1, -(-len(text) // PIECES))
    return [text[start : start + size] for start in range(0, len(text), size)]


async def streamed(message: Message, used: InputUsage, fault: str | None) -> AsyncIterator[bytes]:
    """The events as they go over the wire; few writes, because a thousand streams share one loop."""
    parts = list(events(message, used))
    if fault not in ("cut", "stream_error", "malformed"):
        yield b"".join(parts[:2])
        yield b"".join(parts[2:])
        return
    yield b"".join(parts[: len(parts) // 2])
    if fault == "cut":
        raise Cut
    if fault == "malformed":
        yield b"".join([parts[len(parts) // 2].rstrip()[:-9], b"\n\n", *parts[len(parts) // 2 + 1 :]])
        return
    yield _event("error", error={"type": "overloaded_error", "message": "overloaded"})
