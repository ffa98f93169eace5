"""The rate limit the API enforces, and the headers that tell about it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta


class RateLimit:
    """A token bucket for requests per minute; a limit of tokens is only told."""

    def __init__(self, per_minute: int | None, tokens: int | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_minute = per_minute
        self.tokens = tokens
        self._clock = clock
        self._left = float(per_minute or 0)
        self._at = clock()

    def take(self) -> float | None:
        """None when the request may pass, else how many seconds to wait."""
        if self.per_minute is None:
            return None
        now = self._clock()
        self._left = min(self.per_minute, self._left + (now - self._at) * self.per_minute / 60)
        self._at = now
        if self._left >= 1:
            self._left -= 1
            return None
        return (1 - self._left) * 60 / self.per_minute

    def headers(self) -> dict[str, str]:
        """The rate-limit headers of an answer; without a limit there is none to tell: who obeys it would be slowed."""
        told: dict[str, str] = {}
        if self.per_minute is not None:
            told |= _told("requests", self.per_minute, int(self._left))
        for kind in ("tokens", "input-tokens", "output-tokens") if self.tokens is not None else ():
            told |= _told(kind, self.tokens or 0, self.tokens or 0)
        return told


def _told(kind: str, limit: int, left: int) -> dict[str, str]:
    reset = datetime.now(UTC) + timedelta(seconds=(limit - left) * 60 / limit)
    values = {"limit": str(limit), "remaining": str(left), "reset": reset.strftime("%Y-%m-%dT%H:%M:%SZ")}
    return {f"anthropic-ratelimit-{kind}-{part}": value for part, value in values.items()}
