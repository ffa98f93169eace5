"""Reading along while an answer passes by: what was used, by which model, and why it stopped."""

from collections.abc import Mapping
from typing import Any

from service.models.attempts import tokens_of
from service.models.failures import Malformed
from service.models.port import Tokens
from service.models.streaming import EventReader, parsed

MAX_BUFFER = 32 * 2**20


class Sniffer:
    """Fed with the bytes of one answer, streamed or whole."""

    def __init__(self, content_type: str) -> None:
        self._is_stream = "event-stream" in content_type
        self._reader = EventReader()
        self._body = b""
        self._usage: dict[str, Any] = {}
        self.model: str | None = None
        self.stop_reason: str | None = None
        self.error: dict[str, Any] | None = None  # an error event inside the stream
        self.is_complete = False
        self._is_broken = False

    def feed(self, piece: bytes) -> None:
        """The next bytes."""
        if not self._is_stream:
            self._body = self._body + piece if len(self._body) < MAX_BUFFER else b""
            return
        if self._is_broken:
            return
        try:
            for event in self._reader.feed(piece):
                self._event(event)
        except (Malformed, TypeError, AttributeError):
            self._is_broken = True

    def end(self) -> None:
        """There are no more bytes."""
        if not self._is_stream:
            message = parsed(self._body)
            self._message(message)
            self.is_complete = bool(message.get("usage"))
        self.is_complete = self.is_complete and not self._is_broken

    @property
    def tokens(self) -> Tokens:
        """What was used so far."""
        return tokens_of(self._usage)

    def _event(self, event: Mapping[str, Any]) -> None:
        kind = event.get("type")
        if kind == "message_start":
            self._message(event.get("message") or {})
        elif kind == "message_delta":
            self._use(event.get("usage") or {})
            self.stop_reason = (event.get("delta") or {}).get("stop_reason") or self.stop_reason
        elif kind == "error":
            self.error = dict(event.get("error") or {})
        elif kind == "message_stop":
            self.is_complete = True

    def _message(self, message: Mapping[str, Any]) -> None:
        self.model = message.get("model") or self.model
        self.stop_reason = message.get("stop_reason") or self.stop_reason
        self._use(message.get("usage") or {})

    def _use(self, usage: Mapping[str, Any]) -> None:
        self._usage.update({name: value for name, value in usage.items() if value is not None})
