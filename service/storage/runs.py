"""Runs in the database: claimed with a lease and a fence, saved only while the fence is current, settled once."""

from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import (
    ARRAY,
    JSON,
    BigInteger,
    ColumnElement,
    Connection,
    Engine,
    Float,
    Integer,
    Row,
    String,
    Text,
    bindparam,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    true,
    tuple_,
    update,
)
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert

from schemas.states import BatchState, Outcome, Role, Stage
from service.storage.clock import Now
from service.storage.engine import alone
from service.storage.rows import ASIDE, FIRST_FENCE, Blob, Claim, Message, RunRow, Saved
from service.storage.tables import artifacts, attempts, batches, runs

BUSY = "busy"
# Results of attempts after which the stage is still to be done.
_NOT_ENDED = (BUSY, "handed_back", "lost")
OPEN_STAGES = (Stage.EXECUTE, Stage.CHECK, Stage.JUDGE)

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
    fence=runs.c.fence + bindparam("passed_over", type_=Integer),
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


def _over(into: Any) -> Any:
    """An INSERT of artifacts where a name that an earlier stage left gets new bytes, and stays that stage's."""
    changed = {name: into.excluded[name] for name in ("sha256", "size")}
    return into.on_conflict_do_update(index_elements=["run_id", "name"], set_=changed)


_ARTIFACT = {"postgresql": _over(postgresql_insert(artifacts)), "sqlite": _over(sqlite_insert(artifacts))}


def _at_once(step: Any) -> Any:
    """A step with its attempt and its artifacts in one statement, so in one round trip; PostgreSQL only.

    Nothing of it happens if the lease was lost. Five round trips would cost more than the work they save.
    """
    held = step.cte("held")
    attempt = {
        "run_id": held.c.id,
        "stage": bindparam("at", type_=String),
        "fence": bindparam("held_fence", type_=Integer),
        "worker": bindparam("who", type_=String),
        "started_at": bindparam("since", type_=Float),
        "ended_at": Now(),
        "result": bindparam("came_to", type_=String),
        "error": bindparam("why", type_=Text),
    }
    lists = {"names": String, "digests": String, "sizes": BigInteger}
    given: list[Any] = [bindparam(name, type_=ARRAY(kind)) for name, kind in lists.items()]
    made = func.unnest(*given).table_valued("name", "sha256", "size", name="made").render_derived()
    artifact = {
        "run_id": held.c.id,
        "name": made.c.name,
        "sha256": made.c.sha256,
        "size": made.c.size,
        "stage": bindparam("at", type_=String),
    }
    told = insert(attempts).from_select(list(attempt), select(*attempt.values())).cte("told")
    rows = select(*artifact.values()).select_from(held.join(made, true()))
    kept = _over(postgresql_insert(artifacts).from_select(list(artifact), rows)).cte("kept")
    return select(held).add_cte(told, kept)


_AT_ONCE = {step: _at_once(step) for step in (_ADVANCE, _SETTLE, _HAND_BACK)}
_FILES = (
    select(artifacts.c.name, artifacts.c.sha256, artifacts.c.size)
    .where(artifacts.c.run_id == bindparam("run"))
    .order_by(artifacts.c.name)
)


def message_of(row: Row[Any]) -> Message:
    """The nudge for a run, readable where queues are watched."""
    label = f"batch={row.batch_id} case={row.case_label} configuration={row.configuration} run={row.run_number}"
    return Message(row.stage, row.id, label)


class Runs:
    """The rows of runs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._alone = alone(engine)

    def claim(self, run_id: int, stage: Stage, worker: str, lease_seconds: float) -> Claim | None:
        """Take a run's stage; None if somebody holds it, or it moved on, or it is not due yet."""
        given = {"run": run_id, "at": stage, "who": worker, "lease_seconds": lease_seconds}
        with self._alone.begin() as connection:
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
        with self._alone.begin() as connection:
            return set(connection.execute(statement).scalars())

    def advance(self, claim: Claim, to: Stage, files: Mapping[str, Blob], facts: dict[str, Any]) -> Saved | None:
        """Save a finished stage and move on; None if the lease was lost. A paused batch's run waits instead."""
        passed_over = OPEN_STAGES.index(to) - OPEN_STAGES.index(claim.stage) - 1
        given = {"to": to, "passed_over": passed_over, "new_facts": {**claim.facts, **facts}}
        row = self._save(_ADVANCE, claim, given, files, "done")
        if row is None:
            return None
        return Saved(message_of(row) if row.stage != Stage.WAITING else None, settled=False)

    def settle(
        self, claim: Claim, outcome: Outcome, error: str | None, files: Mapping[str, Blob], facts: dict[str, Any]
    ) -> Saved | None:
        """Save the end of a run, once; None if the lease was lost."""
        given = {"ended": outcome, "new_facts": {**claim.facts, **facts}}
        done = outcome in (Outcome.SCORED, Outcome.GATED, Outcome.UNGRADED)
        if self._save(_SETTLE, claim, given, files, "done" if done else outcome, error) is None:
            return None
        return Saved(None, settled=True)

    def hand_back(
        self,
        claim: Claim,
        delay_seconds: float,
        error: str | None,
        counts: bool,
        waiting: bool = False,
        result: str = "handed_back",
    ) -> bool:
        """Let go of a run so that it is tried again later.

        `counts` says whether this was a failed attempt, `waiting` whether admission must let it in again.
        """
        given: dict[str, Any] = {"pause_seconds": delay_seconds, "uncounted": 0 if counts else 1}
        given["then"] = Stage.WAITING if waiting else claim.stage
        return self._save(_HAND_BACK, claim, given, {}, result, error) is not None

    def busy_since(self, claim: Claim) -> float | None:
        """When the run was first handed back because its model was busy, since a stage of it last ended; else None."""
        mine = (attempts.c.run_id == claim.run_id, attempts.c.stage == claim.stage)
        ended = select(func.max(attempts.c.fence)).where(*mine, attempts.c.result.not_in(_NOT_ENDED))
        since = select(func.min(attempts.c.started_at)).where(
            *mine, attempts.c.result == BUSY, attempts.c.fence > func.coalesce(ended.scalar_subquery(), 0)
        )
        with self._engine.begin() as connection:
            return connection.execute(since).scalar_one_or_none()

    def wake(self, run_ids: Iterable[int]) -> None:
        """What these runs waited for has come: they are due now."""
        waiting = (runs.c.id.in_(list(run_ids)), runs.c.not_before.is_not(None), runs.c.lease_until.is_(None))
        with self._alone.begin() as connection:
            connection.execute(update(runs).where(*waiting).values(not_before=Now()))

    def one(self, run_id: int) -> RunRow | None:
        """A run by its id."""
        with self._alone.begin() as connection:
            row = connection.execute(select(runs).where(runs.c.id == run_id)).one_or_none()
        return run_row(row) if row else None

    def files(self, run_id: int) -> dict[str, Blob]:
        """The artifacts of a run by name."""
        with self._alone.begin() as connection:
            return {row.name: Blob(row.sha256, row.size) for row in connection.execute(_FILES, {"run": run_id})}

    def files_of(self, run_ids: list[int]) -> dict[int, dict[str, Blob]]:
        """The artifacts of many runs, in one question."""
        found: dict[int, dict[str, Blob]] = {}
        with self._alone.begin() as connection:
            for row in connection.execute(select(artifacts).where(artifacts.c.run_id.in_(run_ids))):
                found.setdefault(row.run_id, {})[row.name] = Blob(row.sha256, row.size)
        return found

    def story(self, run_id: int) -> list[dict[str, Any]]:
        """Every attempt at every stage, in order."""
        query = select(attempts).where(attempts.c.run_id == run_id).order_by(attempts.c.id)
        with self._alone.begin() as connection:
            return [dict(row._mapping) for row in connection.execute(query)]

    def of_batch(self, batch_id: str, after: int = -1, limit: int = 500) -> list[RunRow]:
        """A page of a batch's runs in the order of admission, after the given position."""
        query = select(runs).where(runs.c.batch_id == batch_id, runs.c.position > after)
        with self._alone.begin() as connection:
            return [run_row(row) for row in connection.execute(query.order_by(runs.c.position).limit(limit))]

    def of_cases(
        self, batch_id: str, first: int, last: int, after: RunRow | None = None, limit: int | None = None
    ) -> list[RunRow]:
        """The runs of some cases in the order of a report: by case, treatment before control, by number.

        With a limit a page of them, which begins after the given run.
        """
        start = first if after is None else after.case_position
        chosen = (runs.c.batch_id == batch_id, runs.c.case_position >= start, runs.c.case_position <= last)
        order = (runs.c.case_position, runs.c.role.desc(), runs.c.run_number, runs.c.id)
        query = select(runs).where(*chosen, true() if after is None else _comes_after(after))
        with self._alone.begin() as connection:
            return [run_row(row) for row in connection.execute(query.order_by(*order).limit(limit))]

    def arms(self, batch_id: str) -> list[tuple[str, Role | None]]:
        """The configurations of a batch with their roles: treatment, control, then the others."""
        query = select(runs.c.configuration, runs.c.role).where(runs.c.batch_id == batch_id).distinct()
        with self._alone.begin() as connection:
            rows = connection.execute(query.order_by(runs.c.role.desc(), runs.c.configuration)).all()
        return [(row.configuration, _role(row.role)) for row in rows]

    def _save(
        self,
        step: Any,
        claim: Claim,
        given: dict[str, Any],
        files: Mapping[str, Blob],
        result: str,
        error: str | None = None,
    ) -> Row[Any] | None:
        """Take a step with a run that is held, and write down the attempt and its artifacts; None if it is not held."""
        told = {"who": claim.worker, "since": claim.claimed_at, "came_to": result, "why": error}
        everything = {**_held(claim), **told, **given}
        saved_before = claim.fence > FIRST_FENCE[claim.stage] and bool(files or result == "done")
        if self._engine.dialect.name == "postgresql" and not saved_before:
            lists = {
                "names": list(files),
                "digests": [blob.sha256 for blob in files.values()],
                "sizes": [blob.size for blob in files.values()],
            }
            with self._alone.begin() as connection:
                return connection.execute(_AT_ONCE[step], everything | lists).one_or_none()
        with self._engine.begin() as connection:
            row = connection.execute(step, everything).one_or_none()
            if row is not None:
                _keep(connection, claim, files, everything, saved_before)
        return row


def _keep(
    connection: Connection, claim: Claim, files: Mapping[str, Blob], told: dict[str, Any], saved_before: bool
) -> None:
    """Write down the attempt and its artifacts, in place of what an earlier attempt at this stage left."""
    if saved_before:
        again = artifacts.c.stage.in_(OPEN_STAGES[OPEN_STAGES.index(claim.stage) :])
        connection.execute(delete(artifacts).where(artifacts.c.run_id == claim.run_id, again))
    if files:
        made = {"run_id": claim.run_id, "stage": claim.stage}
        rows = [{**made, "name": name, "sha256": blob.sha256, "size": blob.size} for name, blob in files.items()]
        connection.execute(_ARTIFACT[connection.dialect.name], rows)
    connection.execute(_ATTEMPT, told)


def _comes_after(run: RunRow) -> ColumnElement[bool]:
    """What comes after a run in the order of a report, in which roles descend."""
    role = ASIDE if run.role is None else run.role
    same_role = (runs.c.role == role) & (tuple_(runs.c.run_number, runs.c.id) > tuple_(run.run_number, run.id))
    same_case = (runs.c.case_position == run.case_position) & ((runs.c.role < role) | same_role)
    return (runs.c.case_position > run.case_position) | same_case


def _role(text: str) -> Role | None:
    return None if text == ASIDE else Role(text)


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
        role=_role(row.role),
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
        role=_role(row.role),
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
