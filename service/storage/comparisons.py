"""Comparisons in the database: claimed with a lease and a fence, ended once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, Row, and_, func, insert, or_, select, update

from schemas.states import ComparisonState
from service.storage.clock import Now
from service.storage.rows import Blob, Message
from service.storage.tables import batches, comparisons

UNENDED = (ComparisonState.ACCEPTED, ComparisonState.RUNNING)
_FREE = or_(comparisons.c.lease_until.is_(None), comparisons.c.lease_until < Now())
_DUE = or_(comparisons.c.not_before.is_(None), comparisons.c.not_before <= Now())


@dataclass(frozen=True)
class Side:
    """One of the two: an arm of a batch, its skill version, and what people call it."""

    batch_id: str
    configuration: str
    version_id: str | None
    label: str


@dataclass(frozen=True)
class ComparisonRow:
    """One comparison."""

    id: str
    team_id: str
    suite_id: str
    challenger: Side
    champion: Side
    state: ComparisonState
    settings: dict[str, Any]
    attempts: int
    files: dict[str, dict[str, Any]] | None
    assignment: dict[str, dict[str, str]] | None
    result: str | None
    error: str | None
    created_at: float
    started_at: float | None
    finished_at: float | None


@dataclass(frozen=True)
class ComparisonClaim:
    """A comparison held by one worker while its fence is current."""

    comparison: ComparisonRow
    fence: int


class Comparisons:
    """The rows of comparisons."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, new: Mapping[str, Any], challenger: Side, champion: Side) -> Message:
        """Accept a comparison; gives the message that starts it."""
        row = {**new, **_columns("challenger", challenger), **_columns("champion", champion)}
        row |= {"state": ComparisonState.ACCEPTED, "created_at": Now(), "dispatched_at": Now()}
        with self._engine.begin() as connection:
            connection.execute(insert(comparisons).values(**row))
        return message_of(row["id"])

    def one(self, comparison_id: str) -> ComparisonRow | None:
        """A comparison by its id."""
        with self._engine.begin() as connection:
            row = connection.execute(select(comparisons).where(comparisons.c.id == comparison_id)).one_or_none()
        return _row(row) if row else None

    def of_team(self, team_id: str, before: str | None = None, limit: int = 50) -> list[ComparisonRow]:
        """A page of a team's comparisons, newest first."""
        query = select(comparisons).where(comparisons.c.team_id == team_id)
        if before:
            query = query.where(comparisons.c.id < before)
        with self._engine.begin() as connection:
            return [_row(row) for row in connection.execute(query.order_by(comparisons.c.id.desc()).limit(limit))]

    def finished_between(self, version_ids: Sequence[str]) -> list[ComparisonRow]:
        """Finished comparisons of these skill versions with each other, oldest first."""
        both = (
            comparisons.c.challenger_version_id.in_(version_ids),
            comparisons.c.champion_version_id.in_(version_ids),
        )
        query = select(comparisons).where(*both, comparisons.c.state == ComparisonState.FINISHED)
        with self._engine.begin() as connection:
            return [_row(row) for row in connection.execute(query.order_by(comparisons.c.id))]

    def batch_of_version(self, version_id: str, suite_id: str | None = None) -> list[tuple[str, str, str]]:
        """(batch, configuration, suite) of every finished batch that ran this version, newest first."""
        mine = or_(batches.c.skill_version_id == version_id, batches.c.control_version_id == version_id)
        query = select(batches).where(mine, batches.c.state == "finished").order_by(batches.c.id.desc())
        if suite_id is not None:
            query = query.where(batches.c.suite_id == suite_id)
        with self._engine.begin() as connection:
            rows = connection.execute(query).all()
        return [(row.id, _configuration(row, version_id), row.suite_id) for row in rows]

    def claim(self, comparison_id: str, worker: str, lease_seconds: float) -> ComparisonClaim | None:
        """Take a comparison; None if somebody holds it, it is not due or it has ended."""
        statement = (
            update(comparisons)
            .where(comparisons.c.id == comparison_id, comparisons.c.state.in_(UNENDED), _FREE, _DUE)
            .values(
                state=ComparisonState.RUNNING,
                fence=comparisons.c.fence + 1,
                attempts=comparisons.c.attempts + 1,
                lease_until=Now() + lease_seconds,
                not_before=None,
                worker=worker,
                started_at=func.coalesce(comparisons.c.started_at, Now()),
            )
            .returning(*comparisons.c)
        )
        with self._engine.begin() as connection:
            row = connection.execute(statement).one_or_none()
        return ComparisonClaim(_row(row), row.fence) if row else None

    def extend(self, claim: ComparisonClaim, lease_seconds: float) -> bool:
        """Keep a comparison for longer; False if somebody else has it now."""
        with self._engine.begin() as connection:
            return connection.execute(_held(claim).values(lease_until=Now() + lease_seconds)).rowcount == 1

    def finish(
        self, claim: ComparisonClaim, files: Mapping[str, Blob], assignment: Mapping[str, Any], result: str | None
    ) -> bool:
        """End it with what it came to; False if somebody else has it now."""
        body = {name: {"sha256": blob.sha256, "size": blob.size} for name, blob in files.items()}
        return self._end(claim, state=ComparisonState.FINISHED, files=body, assignment=dict(assignment), result=result)

    def fail(self, claim: ComparisonClaim, error: str) -> bool:
        """End it without a result."""
        return self._end(claim, state=ComparisonState.FAILED, error=error)

    def _end(self, claim: ComparisonClaim, **values: Any) -> bool:
        ended = {"finished_at": Now(), "lease_until": None, "dispatched_at": None}
        with self._engine.begin() as connection:
            return connection.execute(_held(claim).values(**values, **ended)).rowcount == 1

    def hand_back(self, claim: ComparisonClaim, delay_seconds: float, reason: str, counts: bool) -> bool:
        """Let go of it so that it is tried again later; an attempt that got on does not count."""
        later = {"lease_until": None, "dispatched_at": None, "not_before": Now() + delay_seconds, "error": reason}
        attempts = comparisons.c.attempts if counts else 0
        with self._engine.begin() as connection:
            return connection.execute(_held(claim).values(**later, attempts=attempts)).rowcount == 1

    def idle(self, seconds: float) -> list[Message]:
        """Comparisons that stand still: their lease ran out, or nobody took them up for so long."""
        never = and_(
            comparisons.c.lease_until.is_(None), func.coalesce(comparisons.c.dispatched_at, 0) < Now() - seconds
        )
        statement = (
            update(comparisons)
            .where(comparisons.c.state.in_(UNENDED), or_(comparisons.c.lease_until < Now(), never), _DUE)
            .values(dispatched_at=Now(), lease_until=None)
            .returning(comparisons.c.id)
        )
        with self._engine.begin() as connection:
            return [message_of(found) for found in connection.execute(statement).scalars()]


def message_of(comparison_id: str) -> Message:
    """The nudge that makes a judge compare."""
    return Message("compare", comparison_id, f"comparison={comparison_id}")


def _held(claim: ComparisonClaim) -> Any:
    mine = (comparisons.c.id == claim.comparison.id, comparisons.c.fence == claim.fence)
    return update(comparisons).where(*mine, comparisons.c.state == ComparisonState.RUNNING)


def _configuration(batch: Row[Any], version_id: str) -> str:
    if batch.skill_version_id != version_id:
        return "old_skill"
    return "new_skill" if batch.control_version_id else "with_skill"


def _columns(name: str, side: Side) -> dict[str, Any]:
    return {
        f"{name}_batch_id": side.batch_id,
        f"{name}_configuration": side.configuration,
        f"{name}_version_id": side.version_id,
        name: side.label,
    }


def _side(row: Row[Any], name: str) -> Side:
    found = row._mapping
    return Side(found[f"{name}_batch_id"], found[f"{name}_configuration"], found[f"{name}_version_id"], found[name])


def _row(row: Row[Any]) -> ComparisonRow:
    return ComparisonRow(
        id=row.id,
        team_id=row.team_id,
        suite_id=row.suite_id,
        challenger=_side(row, "challenger"),
        champion=_side(row, "champion"),
        state=ComparisonState(row.state),
        settings=row.settings,
        attempts=row.attempts,
        files=row.files,
        assignment=row.assignment,
        result=row.result,
        error=row.error,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
    )
