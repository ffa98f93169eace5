"""The endpoints under /v1/messages/batches."""

import json
from collections.abc import Callable

from simulator.batches import Batch, Batches
from simulator.rules import Refused
from simulator.wire import Reply, Request, error_reply, json_reply


class BatchApi:
    """Create, list, retrieve, results, cancel, delete."""

    def __init__(self, batches: Batches, base_url: Callable[[], str], seconds: Callable[[], float]) -> None:
        self.batches = batches
        self._base_url = base_url
        self._seconds = seconds

    def route(self, request: Request) -> Reply:
        """Answer one request."""
        parts = request.path.split("/")[4:]
        if not parts:
            return self._create(request) if request.method == "POST" else self._list(request)
        batch = self.batches.get(parts[0])
        if batch is None:
            return error_reply(404, "not_found_error", f"no such batch: {parts[0]}")
        return self._one(request, batch, parts[1] if len(parts) > 1 else "")

    def _one(self, request: Request, batch: Batch, verb: str) -> Reply:
        if (request.method, verb) == ("GET", "results"):
            return _results(batch)
        if request.method == "DELETE":
            self.batches.delete(batch)
            return json_reply(200, {"id": batch.id, "type": "message_batch_deleted"})
        if (request.method, verb) == ("POST", "cancel"):
            self.batches.cancel(batch)
        return json_reply(200, batch.as_json(self._base_url()))

    def _create(self, request: Request) -> Reply:
        try:
            batch = self.batches.create(list(request.json()["requests"]), self._seconds())
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise Refused(f"batch: {error}") from error
        return json_reply(200, batch.as_json(self._base_url()))

    def _list(self, request: Request) -> Reply:
        limit = int(request.query.get("limit", "20"))
        batches = self.batches.all()
        after = request.query.get("after_id")
        if after:
            ids = [batch.id for batch in batches]
            batches = batches[ids.index(after) + 1 :] if after in ids else []
        page = [batch.as_json(self._base_url()) for batch in batches[:limit]]
        first, last = (page[0]["id"], page[-1]["id"]) if page else (None, None)
        more = len(batches) > limit
        return json_reply(200, {"data": page, "has_more": more, "first_id": first, "last_id": last})


def _results(batch: Batch) -> Reply:
    if batch.results is None:
        return error_reply(404, "not_found_error", f"batch {batch.id} has no results yet")
    lines = "".join(json.dumps(line) + "\n" for line in batch.results)
    return Reply(200, lines.encode(), {"content-type": "application/x-jsonl"})
