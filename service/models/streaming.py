"""A streamed answer put together again, from the bytes: the SDK's objects for every event cost half as much again."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from service.models.clean_text import clean
from service.models.failures import Malformed, StreamFailed, failure_of_answer, malformed

_NO_EVENTS = (b"", b"[DONE]")  # some gateways end a stream with the second
_GROWING = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}


class EventReader:
    """Splits the bytes of a stream into its events."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> Iterator[dict[str, Any]]:
        """The events that are complete with these bytes; raises Malformed, for a lost event changes what was said."""
        *lines, self._rest = (self._rest + piece).split(b"\n")
        for line in lines:
            if line.startswith(b"data:") and line[5:].strip() not in _NO_EVENTS:
                event = parsed(line[5:])
                if not event:
                    raise Malformed("an event is no JSON object")
                yield event


def parsed(data: bytes) -> dict[str, Any]:
    """A JSON object, or an empty one."""
    try:
        value = json.loads(data)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


class Gathering:
    """Grows a message from its events."""

    def __init__(self, headers: Mapping[str, str]) -> None:
        self._headers = headers
        self._reader = EventReader()
        self._message: dict[str, Any] = {}
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, list[str]] = {}
        self._is_complete = False

    def feed(self, piece: bytes) -> None:
        """The next bytes; raises StreamFailed at an error event, or at one that cannot be read."""
        try:
            for event in self._reader.feed(piece):
                self._take(event)
        except (Malformed, KeyError, TypeError, AttributeError) as error:
            raise malformed(self._headers) from error

    def message(self) -> dict[str, Any]:
        """The whole message; raises ConnectionError if the stream ended before it did."""
        if not self._is_complete:
            raise ConnectionError("the stream ended in the middle")
        content = [self._blocks[index] for index in sorted(self._blocks)]
        return {**self._message, "content": clean(content)}

    def _take(self, event: dict[str, Any]) -> None:
        kind, index = event.get("type"), event.get("index", 0)
        if kind == "content_block_delta":
            self._grow(index, event["delta"])
        elif kind == "content_block_start":
            self._blocks[index] = dict(event["content_block"])
        elif kind == "content_block_stop":
            self._close(index)
        elif kind == "message_start":
            self._message = dict(event["message"])
        elif kind == "message_delta":
            self._finish(event)
        elif kind == "message_stop":
            self._is_complete = True
        elif kind == "error":
            raise StreamFailed(failure_of_answer(200, self._headers, event.get("error") or {}))

    def _grow(self, index: int, delta: dict[str, Any]) -> None:
        kind = str(delta.get("type"))
        if kind == "input_json_delta":
            self._inputs.setdefault(index, []).append(delta["partial_json"])
        elif kind == "citations_delta":
            self._blocks[index].setdefault("citations", []).append(delta["citation"])
        elif kind in _GROWING:
            key = _GROWING[kind]
            self._blocks[index][key] = self._blocks[index].get(key, "") + delta[key]

    def _close(self, index: int) -> None:
        """A tool's input is complete now; one that was cut at the output limit stays empty."""
        text = "".join(self._inputs.pop(index, []))
        if "input" in self._blocks[index] and text:
            self._blocks[index]["input"] = parsed(text.encode())

    def _finish(self, event: dict[str, Any]) -> None:
        self._message.update({name: value for name, value in event.get("delta", {}).items() if value is not None})
        used = {name: value for name, value in (event.get("usage") or {}).items() if value is not None}
        self._message["usage"] = {**(self._message.get("usage") or {}), **used}
