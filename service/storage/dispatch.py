"""Which rows need a message: waiting runs that are admitted, and open ones that stand still."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import Connection, Engine, Row, and_, exists, func, insert, or_, select, update

from schemas.states import BatchState, Outcome, Stage
from service.storage.batches import LIVE
from service.storage.clock import Now
from service.storage.rows import Message
from service.storage.runs import OPEN_STAGES, message_of
from service.storage.tables import attempts, batches, runs, teams

# Any number: the name of the lock under which one process at a time admits runs.
_ADMISSION_LOCK = 0x61737361
_PAGE = 1_000
# A waiting run may be on its way in the half-price lane: it is not admitted before it is due.
_DUE = or_(runs.c.not_before.is_(None), runs.c.not_before <= Now())


@dataclass(frozen=True)
class Contender:
    """A batch that has waiting runs, and what it and its team already have open."""

    batch_id: str
    team_id: str
    weight: float
    team_open: int
    team_max_open: int | None
    priority: int
    batch_open: int
    batch_max_open: int | None


# Gives a batch id for every free slot, in the order in which their runs are to start.
Choose: TypeAlias = Callable[[list[Contender], int], list[str]]


class Dispatch:
    """Admission and recovery, as the database sees them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def admit(self, window: int, choose: Choose) -> list[Message]:
        """Open waiting runs while the window has room; the messages come in the order chosen."""
        admitted: list[Message] = []
        with self._engine.begin() as connection:
            _lock_admission(connection)
            # Once more after each round: a chosen batch may have had fewer waiting runs than it was given slots.
            while True:
                contenders, open_count = _contenders(connection)
                order = choose(contenders, window - open_count)
                if not order:
                    return admitted
                opened = {batch: iter(_open_runs(connection, batch, count)) for batch, count in Counter(order).items()}
                admitted += [message for batch in order if (message := next(opened[batch], None))]

    def expired(self, max_attempts: int) -> tuple[list[Message], set[str]]:
        """Leases that ran out: sent again, or settled after too many attempts; gives messages and touched batches."""
        with self._engine.begin() as connection:
            rows = _locked(connection, and_(runs.c.stage.in_(OPEN_STAGES), runs.c.lease_until < Now()))
            given_up = [row for row in rows if row.attempts >= max_attempts]
            again = [row for row in rows if row.attempts < max_attempts]
            _write_lost(connection, rows)
            _give_up(connection, given_up)
            _sent_now(connection, again)
        return [message_of(row) for row in again], {row.batch_id for row in given_up}

    def handed_back(self) -> list[Message]:
        """Runs that were let go and are due again."""
        idle = and_(runs.c.stage.in_(OPEN_STAGES), runs.c.dispatched_at.is_(None), runs.c.lease_until.is_(None), _DUE)
        return self._send_again(idle)

    def overtaken(self, stage: Stage, seconds: float, queue_is_empty: bool) -> list[Message]:
        """Messages of a stage that must be lost: sent long before one that is being worked on, or the queue is empty.

        Queues are first in, first out; a message that others overtook by `seconds` is not in the queue any more.
        """
        unclaimed = (runs.c.stage == stage, runs.c.lease_until.is_(None), runs.c.dispatched_at.is_not(None))
        newest = select(func.max(runs.c.dispatched_at)).where(runs.c.stage == stage, runs.c.lease_until.is_not(None))
        limit = Now() - seconds if queue_is_empty else newest.scalar_subquery() - seconds
        return self._send_again(and_(*unclaimed, runs.c.dispatched_at < limit))

    def all_sent(self) -> list[Message]:
        """Every open run that nobody holds: for a broker that came back empty."""
        lost = (runs.c.stage.in_(OPEN_STAGES), runs.c.lease_until.is_(None), runs.c.dispatched_at.is_not(None))
        return self._send_again(and_(*lost))

    def holders(self) -> list[str]:
        """The names of all workers that hold a run."""
        held = and_(runs.c.stage.in_(OPEN_STAGES), runs.c.lease_until.is_not(None), runs.c.worker.is_not(None))
        with self._engine.begin() as connection:
            return list(connection.execute(select(runs.c.worker).where(held).distinct()).scalars())

    def expire(self, workers: list[str]) -> int:
        """End the leases of workers that are known to be dead; gives the number of runs."""
        held = and_(runs.c.stage.in_(OPEN_STAGES), runs.c.lease_until.is_not(None), runs.c.worker.in_(workers))
        with self._engine.begin() as connection:
            return connection.execute(update(runs).where(held).values(lease_until=0.0)).rowcount

    def idle_aggregates(self, seconds: float) -> list[Message]:
        """Batches whose aggregate stands still: no lease, or one that ran out."""
        never = and_(batches.c.lease_until.is_(None), func.coalesce(batches.c.dispatched_at, 0) < Now() - seconds)
        due = or_(batches.c.not_before.is_(None), batches.c.not_before <= Now())
        statement = (
            update(batches)
            .where(batches.c.state == BatchState.AGGREGATING, or_(batches.c.lease_until < Now(), never), due)
            .values(dispatched_at=Now(), lease_until=None)
            .returning(batches.c.id)
        )
        with self._engine.begin() as connection:
            ids = connection.execute(statement).scalars().all()
        return [Message("aggregate", batch_id, f"batch={batch_id}") for batch_id in ids]

    def settled_batches(self) -> list[str]:
        """Live batches none of whose runs is open any more: whoever settled the last one could not say so."""
        unsettled = exists().where(runs.c.batch_id == batches.c.id, runs.c.stage != Stage.SETTLED)
        with self._engine.begin() as connection:
            return list(connection.execute(select(batches.c.id).where(batches.c.state.in_(LIVE), ~unsettled)).scalars())

    def _send_again(self, condition: Any) -> list[Message]:
        with self._engine.begin() as connection:
            rows = _locked(connection, condition)
            _sent_now(connection, rows)
        return [message_of(row) for row in rows]


def _lock_admission(connection: Connection) -> None:
    # SQLite has one writer at a time anyway.
    if connection.dialect.name == "postgresql":
        connection.execute(select(func.pg_advisory_xact_lock(_ADMISSION_LOCK)))


def _contenders(connection: Connection) -> tuple[list[Contender], int]:
    counted = select(runs.c.batch_id, runs.c.team_id, func.count().label("open")).where(runs.c.stage.in_(OPEN_STAGES))
    open_rows = connection.execute(counted.group_by(runs.c.batch_id, runs.c.team_id)).all()
    by_batch = {row.batch_id: row.open for row in open_rows}
    by_team: dict[str, int] = {}
    for row in open_rows:
        by_team[row.team_id] = by_team.get(row.team_id, 0) + row.open
    has_waiting = exists().where(runs.c.batch_id == batches.c.id, runs.c.stage == Stage.WAITING, _DUE)
    admissible = batches.c.state.in_((BatchState.ACCEPTED, BatchState.RUNNING))
    columns = (batches.c.id, batches.c.team_id, batches.c.priority, batches.c.max_open, teams.c.weight)
    query = select(*columns, teams.c.max_open.label("team_max")).join(teams, teams.c.id == batches.c.team_id)
    rows = connection.execute(query.where(admissible, has_waiting).order_by(batches.c.id)).all()
    return [_contender(row, by_team, by_batch) for row in rows], sum(by_batch.values())


def _contender(row: Any, by_team: dict[str, int], by_batch: dict[str, int]) -> Contender:
    return Contender(
        batch_id=row.id,
        team_id=row.team_id,
        weight=row.weight,
        team_open=by_team.get(row.team_id, 0),
        team_max_open=row.team_max,
        priority=row.priority,
        batch_open=by_batch.get(row.id, 0),
        batch_max_open=row.max_open,
    )


def _open_runs(connection: Connection, batch_id: str, count: int) -> list[Message]:
    """Move a batch's next waiting runs to the stage they enter at."""
    waiting = select(runs.c.id).where(runs.c.batch_id == batch_id, runs.c.stage == Stage.WAITING, _DUE)
    chosen = waiting.order_by(runs.c.position).limit(count).scalar_subquery()
    opened = (
        update(runs)
        .where(runs.c.id.in_(chosen), runs.c.stage == Stage.WAITING)
        .values(stage=runs.c.entry, dispatched_at=Now(), not_before=None)
        .returning(*runs.c)
    )
    rows = sorted(connection.execute(opened).all(), key=lambda row: row.position)
    first = update(batches).where(batches.c.id == batch_id, batches.c.state == BatchState.ACCEPTED)
    connection.execute(first.values(state=BatchState.RUNNING, started_at=Now()))
    return [message_of(row) for row in rows]


def _locked(connection: Connection, condition: Any) -> list[Row[Any]]:
    """Rows that nobody else is repairing right now."""
    query = select(runs).where(condition).order_by(runs.c.dispatched_at).limit(_PAGE).with_for_update(skip_locked=True)
    return list(connection.execute(query).all())


def _sent_now(connection: Connection, rows: list[Row[Any]]) -> None:
    if rows:
        same = runs.c.id.in_([row.id for row in rows])
        connection.execute(update(runs).where(same).values(dispatched_at=Now(), lease_until=None, not_before=None))


def _write_lost(connection: Connection, rows: list[Row[Any]]) -> None:
    for row in rows:
        lost = {"run_id": row.id, "stage": row.stage, "fence": row.fence, "worker": row.worker, "result": "lost"}
        connection.execute(insert(attempts).values(**lost, ended_at=Now(), error="its worker fell silent"))


def _give_up(connection: Connection, rows: list[Row[Any]]) -> None:
    for row in rows:
        words = f"given up after {row.attempts} attempts: the worker fell silent each time"
        ended = {"stage": Stage.SETTLED, "entry": row.stage, "outcome": Outcome.INFRA_ERROR, "error": words}
        mine = update(runs).where(runs.c.id == row.id, runs.c.fence == row.fence)
        connection.execute(
            mine.values(**ended, fence=runs.c.fence + 1, lease_until=None, dispatched_at=None, settled_at=Now())
        )
