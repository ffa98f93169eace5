"""The rate limit the API enforces, and the headers that tell about it."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta


class RateLimit:
    """A token bucket for requests per minute; without a limit it only writes headers."""

    def __init__(self, per_minute: int | None, tokens: int, clock: Callable[[], float] = time.monotonic) -> None:
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
        """The rate-limit headers of an answer."""
        limit = self.per_minute or 1_000_000
        left = int(self._left) if self.per_minute else limit - 1
        reset = (datetime.now(UTC) + timedelta(seconds=(limit - left) * 60 / limit)).strftime("%Y-%m-%dT%H:%M:%SZ")
        told: dict[str, str] = {}
        for name, most, rest in (
            ("requests", limit, left),
            ("tokens", self.tokens, self.tokens),
            ("input-tokens", self.tokens, self.tokens),
            ("output-tokens", self.tokens, self.tokens),
        ):
            told[f"anthropic-ratelimit-{name}-limit"] = str(most)
            told[f"anthropic-ratelimit-{name}-remaining"] = str(rest)
            told[f"anthropic-ratelimit-{name}-reset"] = reset
        return told
