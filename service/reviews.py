"""What people say about runs, and feedback.json made of it."""

from datetime import UTC, datetime
from typing import Any

from service.storage.reviews import ReviewRow, ReviewRows
from service.storage.store import Store, database_errors


class Reviews:
    """Keeps reviews; whose run it is was asked before."""

    def __init__(self, store: Store) -> None:
        self._rows = ReviewRows(store.engine)

    def put(self, run_id: int, batch_id: str, author: str, feedback: str) -> None:
        """Say something about a run, or say it anew."""
        with database_errors():
            self._rows.put(run_id, batch_id, author, feedback)

    def remove(self, run_id: int, author: str) -> bool:
        """Take it back; False if that person said nothing."""
        with database_errors():
            return self._rows.remove(run_id, author)

    def of_run(self, run_id: int) -> list[ReviewRow]:
        """What was said about a run."""
        with database_errors():
            return self._rows.of_run(run_id)

    def document(self, batch_id: str, is_ended: bool) -> dict[str, Any]:
        """feedback.json as skill-creator's viewer writes it."""
        with database_errors():
            rows = self._rows.of_batch(batch_id)
        complete = is_ended and bool(rows)
        return {"reviews": [_entry(row) for row in rows], "status": "complete" if complete else "in_progress"}


def _entry(row: ReviewRow) -> dict[str, Any]:
    when = datetime.fromtimestamp(row.updated_at, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    name = f"eval-{row.case_label}-{row.configuration}-run-{row.run_number}"
    return {"run_id": name, "feedback": row.feedback, "timestamp": when, "author": row.author}
