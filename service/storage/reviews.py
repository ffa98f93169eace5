"""Reviews and uploads in the database."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, delete, insert, select, update

from service.storage.clock import Now
from service.storage.rows import new_id
from service.storage.tables import reviews, runs, uploads


@dataclass(frozen=True)
class ReviewRow:
    """What one person says about one run."""

    run_id: int
    case_position: int
    configuration: str
    run_number: int
    author: str
    feedback: str
    created_at: float
    updated_at: float


class ReviewRows:
    """The rows of reviews."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def put(self, run_id: int, batch_id: str, author: str, feedback: str) -> None:
        """Say it, or say it anew."""
        same = (reviews.c.run_id == run_id, reviews.c.author == author)
        with self._engine.begin() as connection:
            again = update(reviews).where(*same).values(feedback=feedback, updated_at=Now())
            if not connection.execute(again).rowcount:
                new = {"run_id": run_id, "batch_id": batch_id, "author": author, "feedback": feedback}
                connection.execute(insert(reviews).values(**new, created_at=Now(), updated_at=Now()))

    def remove(self, run_id: int, author: str) -> bool:
        """Take it back; False if nothing was said."""
        same = (reviews.c.run_id == run_id, reviews.c.author == author)
        with self._engine.begin() as connection:
            return connection.execute(delete(reviews).where(*same)).rowcount == 1

    def of_run(self, run_id: int) -> list[ReviewRow]:
        """All reviews of a run, oldest first."""
        return self._select(reviews.c.run_id == run_id)

    def of_batch(self, batch_id: str) -> list[ReviewRow]:
        """All reviews of a batch in the order of its runs."""
        return self._select(reviews.c.batch_id == batch_id)

    def _select(self, condition: Any) -> list[ReviewRow]:
        columns = (runs.c.case_position, runs.c.configuration, runs.c.run_number)
        query = select(reviews, *columns).join(runs, runs.c.id == reviews.c.run_id).where(condition)
        with self._engine.begin() as connection:
            rows = connection.execute(query.order_by(runs.c.position, reviews.c.created_at)).all()
        return [ReviewRow(**{name: getattr(row, name) for name in ReviewRow.__dataclass_fields__}) for row in rows]


class UploadRows:
    """The rows of uploads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, team_id: str, version_id: str, sha256: str, size: int, name: str) -> None:
        """Remember the archive a skill version came in."""
        new = {"team_id": team_id, "skill_version_id": version_id, "sha256": sha256, "size": size, "name": name[:200]}
        with self._engine.begin() as connection:
            connection.execute(insert(uploads).values(id=new_id(), **new, created_at=Now()))

    def newest(self, version_id: str) -> tuple[str, str] | None:
        """Digest and file name of the archive that last brought this version."""
        query = select(uploads.c.sha256, uploads.c.name).where(uploads.c.skill_version_id == version_id)
        with self._engine.begin() as connection:
            row = connection.execute(query.order_by(uploads.c.id.desc()).limit(1)).one_or_none()
        return (row.sha256, row.name) if row else None
