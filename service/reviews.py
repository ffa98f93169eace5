"""What people say about runs, and feedback.json made of it."""

from datetime import UTC, datetime
from itertools import groupby
from operator import attrgetter
from typing import Any

from schemas.suite import Case
from service.errors import NotFound
from service.storage.reviews import ReviewRow, ReviewRows
from service.storage.store import Store, database_errors
from service.workspaces.exporting import case_folders, viewer_id
from service.workspaces.reading import case_facts


class Reviews:
    """Keeps reviews; whose run it is was asked before."""

    def __init__(self, store: Store) -> None:
        self._store = store
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
        """feedback.json as skill-creator's viewer writes it, which knows one review of a run."""
        with database_errors():
            rows = self._rows.of_batch(batch_id)
            folders = self._folders(batch_id) if rows else []
        found = [_entry(folders, list(said)) for _, said in groupby(rows, key=attrgetter("run_id"))]
        return {"reviews": found, "status": "complete" if is_ended and found else "in_progress"}

    def _folders(self, batch_id: str) -> list[str]:
        """The folders that an export gives to the batch's cases."""
        batch = self._store.batches.one(batch_id)
        if batch is None:
            raise NotFound(f"there is no batch {batch_id}")
        cases = [case_facts(Case.model_validate_json(body)) for body in self._store.teams.cases(batch.suite_id)]
        return list(case_folders(cases).values())


def _entry(folders: list[str], said: list[ReviewRow]) -> dict[str, Any]:
    """What was said about one run; several people in one text, each with a name."""
    first = said[0]
    newest = max(row.updated_at for row in said)
    return {
        "run_id": viewer_id(folders[first.case_position], first.configuration, first.run_number),
        "feedback": first.feedback
        if len(said) == 1
        else "\n\n".join(f"{r.author}: {r.feedback}" for r in said if r.feedback),
        "timestamp": datetime.fromtimestamp(newest, UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        "author": ", ".join(row.author for row in said),
    }
