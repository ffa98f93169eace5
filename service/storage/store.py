"""The store: every question to the database is asked through it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, OperationalError

from service.errors import Unavailable
from service.storage import batches as batch_rows
from service.storage.batches import Batches
from service.storage.comparisons import Comparisons
from service.storage.dispatch import Dispatch
from service.storage.ledger import LedgerRows
from service.storage.rows import NewRun, SkillVersionRow
from service.storage.runs import Runs
from service.storage.teams import Teams, lock_team, record_skill_version, record_suite, versions_of


class Store:
    """All rows, by what they are about."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.teams = Teams(engine)
        self.batches = Batches(engine)
        self.runs = Runs(engine)
        self.dispatch = Dispatch(engine)
        self.ledger = LedgerRows(engine)
        self.comparisons = Comparisons(engine)

    @contextmanager
    def submit(self, team_id: str) -> Iterator["Submit"]:
        """One transaction in which a batch is accepted whole or not at all."""
        with self.engine.begin() as connection:
            lock_team(connection, team_id)
            yield Submit(connection, team_id)

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


@dataclass(frozen=True)
class Submit:
    """The steps of accepting a batch."""

    connection: Connection
    team_id: str

    def skill_version(self, **new: Any) -> SkillVersionRow:
        """Record the skill, or find it by its digest."""
        return record_skill_version(self.connection, {"team_id": self.team_id, **new})

    def versions(self, skill: str) -> list[SkillVersionRow]:
        """All versions of a skill, this submit's included."""
        return versions_of(self.connection, self.team_id, skill)

    def suite(self, new: dict[str, Any], bodies: list[tuple[str, str]]) -> str:
        """Record the suite and its cases, or find it by its digest."""
        return record_suite(self.connection, {"team_id": self.team_id, **new}, bodies)

    def next_iteration(self, skill: str) -> int:
        """The number of the skill's next batch."""
        return batch_rows.next_iteration(self.connection, self.team_id, skill)

    def batch(self, row: dict[str, Any], planned: Iterable[NewRun]) -> None:
        """Write the batch and all its runs."""
        batch_rows.insert_batch(self.connection, {"team_id": self.team_id, **row}, planned)


def is_connection_trouble(error: Exception) -> bool:
    """Whether the database is away, as opposed to our having asked nonsense."""
    return isinstance(error, OperationalError) or (isinstance(error, DBAPIError) and error.connection_invalidated)


_REMEDIES = {
    "disk is full": "free some space",
    "disk I/O error": "check that the disk is not full and works",
    "readonly database": "make the data folder writable, or choose another with --data",
    "unable to open database file": "make the data folder writable, or choose another with --data",
}


@contextmanager
def database_errors() -> Iterator[None]:
    """Turn the database's absence into one sentence."""
    try:
        yield
    except DBAPIError as error:
        if not is_connection_trouble(error):
            raise
        reason = str(error.orig).strip().splitlines()[0]
        if remedy := next((remedy for words, remedy in _REMEDIES.items() if words in reason), None):
            raise Unavailable(f"the database cannot be written: {reason}; {remedy}") from error
        raise Unavailable(
            f"the database does not answer: {reason}; check ASSAY_DATABASE_URL and that it runs"
        ) from error
