"""What the simulator counts."""

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from simulator.caching import InputUsage

MAX_DIGESTS = 500_000


@dataclass
class Stats:
    """Counters since the start or the last reset."""

    requests: int = 0
    in_flight: int = 0
    peak_in_flight: int = 0
    connections: int = 0
    by_path: Counter[str] = field(default_factory=Counter)
    by_status: Counter[str] = field(default_factory=Counter)
    by_model: Counter[str] = field(default_factory=Counter)
    by_kind: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)
    answered: int = 0  # messages that were answered in full and would be billed
    batches: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)  # digest of a body: how often it came

    def reset(self) -> None:
        """Start again at 0; what is open stays open."""
        self.requests = self.connections = self.answered = 0
        self.peak_in_flight = self.in_flight
        for counter in (self.by_path, self.by_status, self.by_model, self.by_kind, self.faults, self.tokens):
            counter.clear()
        self.batches.clear()
        self.seen.clear()

    def arrive(self, path: str) -> None:
        """A request is open."""
        self.requests += 1
        self.by_path[path] += 1
        self.in_flight += 1
        self.peak_in_flight = max(self.peak_in_flight, self.in_flight)

    def leave(self, status: int) -> None:
        """A request was answered, or its connection ended (status 0)."""
        self.in_flight -= 1
        self.by_status[str(status)] += 1

    def note_body(self, body: bytes) -> None:
        """Remember how often exactly this was asked."""
        if len(self.seen) < MAX_DIGESTS:
            self.seen[hashlib.blake2b(body, digest_size=12).hexdigest()] += 1

    def note_answer(self, used: InputUsage, output_tokens: int) -> None:
        """Count what an answer would cost."""
        self.answered += 1
        self.tokens["input"] += used.fresh
        self.tokens["cache_read"] += used.read
        self.tokens["cache_write"] += used.written_5m + used.written_1h
        self.tokens["output"] += output_tokens

    def as_json(self) -> dict[str, Any]:
        """The counters as /stats shows them."""
        names = ("requests", "in_flight", "peak_in_flight", "connections", "answered")
        plain: dict[str, Any] = {name: getattr(self, name) for name in names}
        counters = ("by_path", "by_status", "by_model", "by_kind", "faults", "tokens", "batches")
        plain.update({name: dict(getattr(self, name)) for name in counters})
        plain["distinct_requests"] = len(self.seen)
        plain["most_repeated"] = max(self.seen.values(), default=0)
        return plain
