"""Runs in the database: claimed with a lease and a fence, saved only while the fence is current, settled once."""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import (
    JSON,
    Connection,
    Engine,
    Float,
    Integer,
    Row,
    String,
    bindparam,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    tuple_,
    update,
)

from schemas.states import BatchState, Outcome, Role, Stage
from service.storage.clock import Now
from service.storage.rows import Blob, Claim, Message, RunRow, Saved
from service.storage.tables import artifacts, attempts, batches, runs

OPEN_STAGES = (Stage.EXECUTE, Stage.CHECK, Stage.JUDGE)
# The fence of a stage's first claim when nothing ever went wrong: a higher one means that something was saved before.
_FIRST_FENCE = {Stage.EXECUTE: 1, Stage.CHECK: 2, Stage.JUDGE: 3}


# The statements of the hot path are built once: building them anew would cost more than running them.
_FREE = or_(runs.c.lease_until.is_(None), runs.c.lease_until < Now())
_DUE = or_(runs.c.not_before.is_(None), runs.c.not_before <= Now())
_CLAIM = (
    update(runs)
    .where(runs.c.id == bindparam("run"), runs.c.stage == bindparam("at"), _FREE, _DUE)
    .values(
        fence=runs.c.fence + 1,
        attempts=runs.c.attempts + 1,
        lease_until=Now() + bindparam("lease_seconds", type_=Float),
        not_before=None,
        worker=bindparam("who"),
        started_at=func.coalesce(runs.c.started_at, Now()),
    )
    .returning(*runs.c, Now().label("claimed_at"))
)
_HELD = update(runs).where(
    runs.c.id == bindparam("run"), runs.c.fence == bindparam("held_fence"), runs.c.stage == bindparam("at")
)
_IS_PAUSED = select(batches.c.state == BatchState.PAUSED).where(batches.c.id == runs.c.batch_id).scalar_subquery()
_ADVANCE = _HELD.values(
    stage=case((_IS_PAUSED, Stage.WAITING), else_=bindparam("to", type_=String)),
    entry=bindparam("to"),
    attempts=0,
    lease_until=None,
    dispatched_at=case((_IS_PAUSED, None), else_=Now()),
    facts=bindparam("new_facts", type_=JSON),
).returning(*runs.c)
_SETTLE = _HELD.values(
    stage=Stage.SETTLED,
    entry=bindparam("at"),
    outcome=bindparam("ended"),
    error=bindparam("why"),
    lease_until=None,
    dispatched_at=None,
    settled_at=Now(),
    facts=bindparam("new_facts", type_=JSON),
).returning(runs.c.id)
_HAND_BACK = _HELD.values(
    stage=bindparam("then"),
    entry=bindparam("at"),
    lease_until=None,
    dispatched_at=None,
    not_before=Now() + bindparam("pause_seconds", type_=Float),
    attempts=runs.c.attempts - bindparam("uncounted", type_=Integer),
).returning(runs.c.id)
_ATTEMPT = insert(attempts).values(
    run_id=bindparam("run"),
    stage=bindparam("at"),
    fence=bindparam("held_fence"),
    worker=bindparam("who"),
    started_at=bindparam("since"),
    ended_at=Now(),
    result=bindparam("came_to"),
    error=bindparam("why"),
)
_ARTIFACT = insert(artifacts)


def message_of(row: Row[Any]) -> Message:
    """The nudge for a run, readable where queues are watched."""
    label = f"batch={row.batch_id} case={row.case_label} configuration={row.configuration} run={row.run_number}"
    return Message(row.stage, row.id, label)


class Runs:
    """The rows of runs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def claim(self, run_id: int, stage: Stage, worker: str, lease_seconds: float) -> Claim | None:
        """Take a run's stage; None if somebody holds it, or it moved on, or it is not due yet."""
        given = {"run": run_id, "at": stage, "who": worker, "lease_seconds": lease_seconds}
        with self._engine.begin() as connection:
            row = connection.execute(_CLAIM, given).one_or_none()
        return _claim(row, worker) if row else None

    def extend(self, held: Iterable[tuple[int, int]], lease_seconds: float) -> set[int]:
        """Keep these (run, fence) pairs for longer; gives the runs that are still held."""
        pairs = list(held)
        if not pairs:
            return set()
        statement = (
            update(runs)
            .where(tuple_(runs.c.id, runs.c.fence).in_(pairs), runs.c.lease_until.is_not(None))
            .values(lease_until=Now() + lease_seconds)
            .returning(runs.c.id)
        )
        with self._engine.begin() as connection:
            return set(connection.execute(statement).scalars())

    def advance(self, claim: Claim, to: Stage, files: Mapping[str, Blob], facts: dict[str, Any]) -> Saved | None:
        """Save a finished stage and move on; None if the lease was lost. A paused batch's run waits instead."""
        with self._engine.begin() as connection:
            row = connection.execute(
                _ADVANCE, {**_held(claim), "to": to, "new_facts": {**claim.facts, **facts}}
            ).one_or_none()
            if row is None:
                return None
            self._keep(connection, claim, files, "done")
        return Saved(message_of(row) if row.stage != Stage.WAITING else None, settled=False)

    def settle(
        self, claim: Claim, outcome: Outcome, error: str | None, files: Mapping[str, Blob], facts: dict[str, Any]
    ) -> Saved | None:
        """Save the end of a run, once; None if the lease was lost."""
        given = {**_held(claim), "ended": outcome, "why": error, "new_facts": {**claim.facts, **facts}}
        done = outcome in (Outcome.SCORED, Outcome.GATED, Outcome.UNGRADED)
        with self._engine.begin() as connection:
            if connection.execute(_SETTLE, given).one_or_none() is None:
                return None
            self._keep(connection, claim, files, "done" if done else outcome, error)
        return Saved(None, settled=True)

    def hand_back(
        self, claim: Claim, delay_seconds: float, error: str | None, counts: bool, waiting: bool = False
    ) -> bool:
        """Let go of a run so that it is tried again later.

        `counts` says whether this was a failed attempt, `waiting` whether admission must let it in again.
        """
        given = {**_held(claim), "pause_seconds": delay_seconds, "uncounted": 0 if counts else 1}
        given["then"] = Stage.WAITING if waiting else claim.stage
        with self._engine.begin() as connection:
            if connection.execute(_HAND_BACK, given).one_or_none() is None:
                return False
            self._keep(connection, claim, {}, "handed_back", error)
        return True

    def wake(self, run_ids: Iterable[int]) -> None:
        """What these runs waited for has come: they are due now."""
        waiting = (runs.c.id.in_(list(run_ids)), runs.c.not_before.is_not(None), runs.c.lease_until.is_(None))
        with self._engine.begin() as connection:
            connection.execute(update(runs).where(*waiting).values(not_before=Now()))

    def one(self, run_id: int) -> RunRow | None:
        """A run by its id."""
        with self._engine.begin() as connection:
            row = connection.execute(select(runs).where(runs.c.id == run_id)).one_or_none()
        return run_row(row) if row else None

    def files(self, run_id: int) -> dict[str, Blob]:
        """The artifacts of a run by name."""
        query = select(artifacts).where(artifacts.c.run_id == run_id).order_by(artifacts.c.name)
        with self._engine.begin() as connection:
            return {row.name: Blob(row.sha256, row.size) for row in connection.execute(query)}

    def files_of(self, run_ids: list[int]) -> dict[int, dict[str, Blob]]:
        """The artifacts of many runs, in one question."""
        found: dict[int, dict[str, Blob]] = {}
        with self._engine.begin() as connection:
            for row in connection.execute(select(artifacts).where(artifacts.c.run_id.in_(run_ids))):
                found.setdefault(row.run_id, {})[row.name] = Blob(row.sha256, row.size)
        return found

    def story(self, run_id: int) -> list[dict[str, Any]]:
        """Every attempt at every stage, in order."""
        query = select(attempts).where(attempts.c.run_id == run_id).order_by(attempts.c.id)
        with self._engine.begin() as connection:
            return [dict(row._mapping) for row in connection.execute(query)]

    def of_batch(self, batch_id: str, after: int = -1, limit: int = 500) -> list[RunRow]:
        """A page of a batch's runs in the order of admission, after the given position."""
        query = select(runs).where(runs.c.batch_id == batch_id, runs.c.position > after)
        with self._engine.begin() as connection:
            return [run_row(row) for row in connection.execute(query.order_by(runs.c.position).limit(limit))]

    def of_cases(self, batch_id: str, first: int, last: int) -> list[RunRow]:
        """The runs of some cases in the order of a report: by case, treatment before control, by number."""
        chosen = (runs.c.batch_id == batch_id, runs.c.case_position >= first, runs.c.case_position <= last)
        order = (runs.c.case_position, runs.c.role.desc(), runs.c.run_number)
        with self._engine.begin() as connection:
            return [run_row(row) for row in connection.execute(select(runs).where(*chosen).order_by(*order))]

    @staticmethod
    def _keep(
        connection: Connection, claim: Claim, files: Mapping[str, Blob], result: str, error: str | None = None
    ) -> None:
        """Write down the attempt and its artifacts, in place of what an earlier attempt at this stage left."""
        if claim.fence > _FIRST_FENCE[claim.stage] and (files or result == "done"):
            again = artifacts.c.stage.in_(OPEN_STAGES[OPEN_STAGES.index(claim.stage) :])
            connection.execute(delete(artifacts).where(artifacts.c.run_id == claim.run_id, again))
        if files:
            made = {"run_id": claim.run_id, "stage": claim.stage}
            rows = [{**made, "name": name, "sha256": blob.sha256, "size": blob.size} for name, blob in files.items()]
            connection.execute(_ARTIFACT, rows)
        told = {"who": claim.worker, "since": claim.claimed_at, "came_to": result, "why": error}
        connection.execute(_ATTEMPT, {**_held(claim), **told})


def _held(claim: Claim) -> dict[str, Any]:
    return {"run": claim.run_id, "held_fence": claim.fence, "at": claim.stage}


def _claim(row: Row[Any], worker: str) -> Claim:
    return Claim(
        run_id=row.id,
        batch_id=row.batch_id,
        stage=Stage(row.stage),
        fence=row.fence,
        attempt=row.attempts,
        position=row.position,
        case_position=row.case_position,
        case_label=row.case_label,
        configuration=row.configuration,
        role=Role(row.role),
        run_number=row.run_number,
        skill_version_id=row.skill_version_id,
        facts=row.facts or {},
        claimed_at=row.claimed_at,
        worker=worker,
    )


def run_row(row: Row[Any]) -> RunRow:
    """A run as lists and reports show it."""
    return RunRow(
        id=row.id,
        batch_id=row.batch_id,
        position=row.position,
        case_position=row.case_position,
        case_label=row.case_label,
        configuration=row.configuration,
        role=Role(row.role),
        run_number=row.run_number,
        skill_version_id=row.skill_version_id,
        stage=Stage(row.stage),
        entry=Stage(row.entry),
        outcome=Outcome(row.outcome) if row.outcome else None,
        error=row.error,
        attempts=row.attempts,
        worker=row.worker,
        facts=row.facts,
        started_at=row.started_at,
        settled_at=row.settled_at,
    )
