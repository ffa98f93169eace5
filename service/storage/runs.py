"""Runs in the database: claimed with a lease and a fence, saved only while the fence is current, settled once."""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Connection, Engine, Row, case, delete, insert, or_, select, tuple_, update

from schemas.states import BatchState, Outcome, Role, Stage
from service.storage.clock import Now
from service.storage.rows import Blob, Claim, Message, RunRow, Saved
from service.storage.tables import artifacts, attempts, batches, runs

OPEN_STAGES = (Stage.EXECUTE, Stage.CHECK, Stage.JUDGE)
# The fence of a stage's first claim when nothing ever went wrong: a higher one means that something was saved before.
_FIRST_FENCE = {Stage.EXECUTE: 1, Stage.CHECK: 2, Stage.JUDGE: 3}


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
        free = or_(runs.c.lease_until.is_(None), runs.c.lease_until < Now())
        due = or_(runs.c.not_before.is_(None), runs.c.not_before <= Now())
        statement = (
            update(runs)
            .where(runs.c.id == run_id, runs.c.stage == stage, free, due)
            .values(
                fence=runs.c.fence + 1,
                attempts=runs.c.attempts + 1,
                lease_until=Now() + lease_seconds,
                not_before=None,
                worker=worker,
                started_at=case((runs.c.started_at.is_(None), Now()), else_=runs.c.started_at),
            )
            .returning(*runs.c, Now().label("claimed_at"))
        )
        with self._engine.begin() as connection:
            row = connection.execute(statement).one_or_none()
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
        paused = select(batches.c.state == BatchState.PAUSED).where(batches.c.id == runs.c.batch_id).scalar_subquery()
        statement = (
            self._held(claim)
            .values(
                stage=case((paused, Stage.WAITING), else_=to),
                entry=to,
                attempts=0,
                lease_until=None,
                dispatched_at=case((paused, None), else_=Now()),
                facts={**claim.facts, **facts},
            )
            .returning(*runs.c)
        )
        with self._engine.begin() as connection:
            row = connection.execute(statement).one_or_none()
            if row is None:
                return None
            self._keep(connection, claim, files, "done")
        return Saved(message_of(row) if row.stage != Stage.WAITING else None, settled=False)

    def settle(
        self, claim: Claim, outcome: Outcome, error: str | None, files: Mapping[str, Blob], facts: dict[str, Any]
    ) -> Saved | None:
        """Save the end of a run, once; None if the lease was lost."""
        statement = (
            self._held(claim)
            .values(
                stage=Stage.SETTLED,
                entry=claim.stage,
                outcome=outcome,
                error=error,
                lease_until=None,
                dispatched_at=None,
                settled_at=Now(),
                facts={**claim.facts, **facts},
            )
            .returning(runs.c.id)
        )
        done = outcome in (Outcome.SCORED, Outcome.GATED, Outcome.UNGRADED)
        with self._engine.begin() as connection:
            if connection.execute(statement).one_or_none() is None:
                return None
            self._keep(connection, claim, files, "done" if done else outcome, error)
        return Saved(None, settled=True)

    def hand_back(self, claim: Claim, delay_seconds: float, error: str | None, counts: bool) -> bool:
        """Let go of a run so that it is tried again later; `counts` says whether this was a failed attempt."""
        statement = (
            self._held(claim)
            .values(
                lease_until=None,
                dispatched_at=None,
                not_before=Now() + delay_seconds,
                attempts=runs.c.attempts - (0 if counts else 1),
            )
            .returning(runs.c.id)
        )
        with self._engine.begin() as connection:
            if connection.execute(statement).one_or_none() is None:
                return False
            self._keep(connection, claim, {}, "handed_back", error)
        return True

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

    @staticmethod
    def _held(claim: Claim) -> Any:
        return update(runs).where(runs.c.id == claim.run_id, runs.c.fence == claim.fence, runs.c.stage == claim.stage)

    @staticmethod
    def _keep(
        connection: Connection, claim: Claim, files: Mapping[str, Blob], result: str, error: str | None = None
    ) -> None:
        """Write down the attempt and its artifacts, in place of what an earlier attempt at this stage left."""
        if claim.fence > _FIRST_FENCE[claim.stage] and (files or result == "done"):
            again = artifacts.c.stage.in_(OPEN_STAGES[OPEN_STAGES.index(claim.stage) :])
            connection.execute(delete(artifacts).where(artifacts.c.run_id == claim.run_id, again))
        if files:
            rows = [
                {"run_id": claim.run_id, "name": name, "sha256": blob.sha256, "size": blob.size, "stage": claim.stage}
                for name, blob in files.items()
            ]
            connection.execute(insert(artifacts), rows)
        attempt = {"run_id": claim.run_id, "stage": claim.stage, "fence": claim.fence, "worker": claim.worker}
        ended = insert(attempts).values(
            **attempt, started_at=claim.claimed_at, ended_at=Now(), result=result, error=error
        )
        connection.execute(ended)


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
