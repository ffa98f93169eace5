"""Message batches: the half-price lane of the API."""

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from simulator.draw import drawn

MAX_REQUESTS = 100_000


@dataclass
class Batch:
    """One message batch; its results are made when it ends."""

    id: str
    requests: list[dict[str, Any]]
    created: float
    ends: float
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    cancelled_at: datetime | None = None
    ended_at: datetime | None = None
    results: list[dict[str, Any]] | None = None

    @property
    def status(self) -> str:
        """in_progress, canceling or ended."""
        return "ended" if self.results is not None else "canceling" if self.cancelled_at else "in_progress"

    def counts(self) -> dict[str, int]:
        """How many requests stand where; all are processing until the whole batch ends."""
        counts = dict.fromkeys(("processing", "succeeded", "errored", "canceled", "expired"), 0)
        if self.results is None:
            counts["processing"] = len(self.requests)
        for line in self.results or []:
            counts[line["result"]["type"]] += 1
        return counts

    def as_json(self, base_url: str) -> dict[str, Any]:
        """The batch in the API's form."""
        url = f"{base_url}/v1/messages/batches/{self.id}/results" if self.results is not None else None
        return {
            "id": self.id,
            "type": "message_batch",
            "processing_status": self.status,
            "request_counts": self.counts(),
            "created_at": _stamp(self.created_at),
            "expires_at": _stamp(self.created_at + timedelta(hours=24)),
            "ended_at": _stamp(self.ended_at),
            "cancel_initiated_at": _stamp(self.cancelled_at),
            "archived_at": None,
            "results_url": url,
        }


def _stamp(moment: datetime | None) -> str | None:
    return moment.isoformat().replace("+00:00", "Z") if moment else None


class Batches:
    """All batches of a simulator. `answer` makes one result; it is called once for each request, when a batch ends."""

    def __init__(self, answer: Callable[[dict[str, Any]], dict[str, Any]], counted: dict[str, int]) -> None:
        self._answer = answer
        self._counted = counted
        self._all: dict[str, Batch] = {}
        self._digests: dict[str, int] = {}

    def create(self, requests: list[dict[str, Any]], seconds: float) -> Batch:
        """Accept a batch; raises ValueError for one the API would refuse."""
        ids = [str(request.get("custom_id", "")) for request in requests]
        if not ids or len(ids) > MAX_REQUESTS:
            raise ValueError(f"requests: between 1 and {MAX_REQUESTS} are allowed")
        if len(set(ids)) != len(ids) or not all(0 < len(one) <= 64 for one in ids):
            raise ValueError("requests: custom_id must be unique and have 1 to 64 characters")
        self._note_again(requests)
        now = time.monotonic()
        batch = Batch(f"msgbatch_simulated_{len(self._all) + 1:06d}", requests, now, now + seconds)
        self._all[batch.id] = batch
        self._count("created", 1)
        return batch

    def get(self, batch_id: str) -> Batch | None:
        """A batch, ended if its time has come."""
        batch = self._all.get(batch_id)
        if batch and batch.results is None and (batch.cancelled_at or time.monotonic() >= batch.ends):
            self._end(batch)
        return batch

    def all(self) -> list[Batch]:
        """Newest first."""
        return [batch for one in reversed(list(self._all)) if (batch := self.get(one))]

    def cancel(self, batch: Batch) -> None:
        """Ask for the end; it ends at the next look."""
        if batch.results is None:
            batch.cancelled_at = datetime.now(UTC)
            self._count("cancelled", 1)

    def delete(self, batch: Batch) -> None:
        """Forget a batch."""
        del self._all[batch.id]

    def _end(self, batch: Batch) -> None:
        if batch.cancelled_at:
            results: list[dict[str, Any]] = [{"type": "canceled"} for _ in batch.requests]
        else:
            results = [self._answer(request.get("params") or {}) for request in batch.requests]
        named = zip(batch.requests, results, strict=True)
        lines = [{"custom_id": request["custom_id"], "result": result} for request, result in named]
        drawn(batch.id).shuffle(lines)  # the API does not keep the order either
        batch.results, batch.ended_at = lines, datetime.now(UTC)
        self._count("paid_requests", sum(1 for line in lines if line["result"]["type"] == "succeeded"))

    def _note_again(self, requests: list[dict[str, Any]]) -> None:
        """Count requests that were sent before, under the same id: they are paid twice."""
        for request in requests:
            digest = hashlib.sha256(json.dumps(request, sort_keys=True).encode()).hexdigest()
            self._digests[digest] = self._digests.get(digest, 0) + 1
            if self._digests[digest] > 1:
                self._count("repeated_requests", 1)

    def _count(self, name: str, number: int) -> None:
        self._counted[name] = self._counted.get(name, 0) + number
