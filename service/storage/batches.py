"""Batches in the database: one transaction to accept one, conditional updates for every change of state."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Engine, Row, bindparam, case, exists, func, insert, or_, select, update

from schemas.states import BatchState, Outcome, Stage
from service.storage.clock import Now
from service.storage.engine import alone
from service.storage.progress import count_runs, progress_of
from service.storage.rows import (
    ASIDE,
    DECISIONS,
    FIRST_FENCE,
    BatchRow,
    Blob,
    Given,
    GivenReview,
    Message,
    NewRun,
    Progress,
)
from service.storage.tables import artifacts, batches, reviews, runs, skill_versions

LIVE = (BatchState.ACCEPTED, BatchState.RUNNING, BatchState.PAUSED)
RETRYABLE = tuple(set(Outcome) - {Outcome.SCORED, Outcome.GATED, Outcome.UNGRADED})
_INSERT_SIZE = 5_000

# Asked after every run that settles, so built once.
_FINISH = (
    update(batches)
    .where(
        batches.c.id == bindparam("batch"),
        batches.c.state.in_(LIVE),
        ~exists().where(runs.c.batch_id == bindparam("batch"), runs.c.stage != Stage.SETTLED),
    )
    .values(state=BatchState.AGGREGATING, dispatched_at=Now(), lease_until=None, attempts=0)
    .returning(batches.c.id)
)


class Batches:
    """The rows of batches."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._alone = alone(engine)

    def one(self, batch_id: str) -> BatchRow | None:
        """A batch by its id."""
        with self._alone.begin() as connection:
            row = connection.execute(select(batches).where(batches.c.id == batch_id)).one_or_none()
        return batch_row(row) if row else None

    def of_team(self, team_id: str, before: str | None = None, limit: int = 50) -> list[BatchRow]:
        """A page of a team's batches, newest first."""
        query = select(batches).where(batches.c.team_id == team_id)
        if before:
            query = query.where(batches.c.id < before)
        with self._alone.begin() as connection:
            return [batch_row(row) for row in connection.execute(query.order_by(batches.c.id.desc()).limit(limit))]

    def by_key(self, team_id: str, key: str) -> tuple[BatchRow, str | None] | None:
        """The batch that was submitted with this idempotency key, and the digest of that submit."""
        query = select(batches).where(batches.c.team_id == team_id, batches.c.idempotency_key == key)
        with self._alone.begin() as connection:
            row = connection.execute(query).one_or_none()
        return (batch_row(row), row.request_digest) if row else None

    def progress(self, batch_id: str) -> Progress:
        """Counts by stage and outcome, and how fast it was of late."""
        with self._alone.begin() as connection:
            return progress_of(batch_id, connection.execute(count_runs([batch_id])))

    def pause(self, batch_id: str) -> bool:
        """No waiting run of the batch starts; False if it is not in a state to be paused."""
        return self._move(batch_id, (BatchState.ACCEPTED, BatchState.RUNNING), BatchState.PAUSED)

    def pause_team(self, team_id: str) -> int:
        """Pause everything a team has under way; gives the number of batches."""
        active = batches.c.state.in_((BatchState.ACCEPTED, BatchState.RUNNING))
        statement = update(batches).where(batches.c.team_id == team_id, active).values(state=BatchState.PAUSED)
        with self._alone.begin() as connection:
            return connection.execute(statement).rowcount

    def resume(self, batch_id: str) -> bool:
        """Let a paused batch go on; False if it is not paused."""
        return self._move(batch_id, (BatchState.PAUSED,), BatchState.RUNNING)

    def cancel(self, batch_id: str) -> bool:
        """Settle everything that has not ended as cancelled; False if the batch ended already."""
        mine = update(batches).where(
            batches.c.id == batch_id, batches.c.state.in_(LIVE), batches.c.cancelled_at.is_(None)
        )
        ended = (
            update(runs)
            .where(runs.c.batch_id == batch_id, runs.c.stage != Stage.SETTLED)
            .values(
                # A waiting run keeps its entry: that is where a retry goes on.
                entry=_where_it_stands(),
                stage=Stage.SETTLED,
                outcome=Outcome.CANCELLED,
                error="the batch was cancelled",
                fence=runs.c.fence + 1,
                lease_until=None,
                dispatched_at=None,
                settled_at=Now(),
            )
        )
        with self._engine.begin() as connection:
            if connection.execute(mine.values(cancelled_at=Now()).returning(batches.c.id)).one_or_none() is None:
                return False
            connection.execute(ended)
        return True

    def retry(
        self,
        batch_id: str,
        outcomes: Sequence[Outcome] = RETRYABLE,
        executes: bool = True,
        budget: Mapping[str, float] | None = None,
    ) -> int:
        """Send settled runs back to the stage that failed; gives their number.

        They begin anew: when they were first at work is forgotten, or the time until the retry would count as work.
        `executes` is False for a batch whose runs were given: those that failed at execute stay as they are.
        `budget` replaces the batch's own: max_cost_usd, max_tokens.
        """
        again = (
            update(runs)
            .where(runs.c.batch_id == batch_id, runs.c.stage == Stage.SETTLED, runs.c.outcome.in_(outcomes))
            .values(stage=Stage.WAITING, outcome=None, error=None, attempts=0, not_before=None)
            .values(started_at=None, settled_at=None)
        )
        if not executes:
            again = again.where(runs.c.entry != Stage.EXECUTE)
        ended = (BatchState.FINISHED, BatchState.CANCELLED)
        reopen = update(batches).where(batches.c.id == batch_id, batches.c.state.in_(ended))
        with self._engine.begin() as connection:
            if budget:
                _set_budget(connection, batch_id, budget)
            count = connection.execute(again).rowcount
            if count:
                fresh = {"cancelled_at": None, "finished_at": None, "error": None, "attempts": 0}
                connection.execute(reopen.values(state=BatchState.RUNNING, **fresh))
        return count

    def finish_if_settled(self, batch_id: str) -> Message | None:
        """Ask, after a run settled, whether it was the last: then the batch is aggregated. Safe to ask again."""
        with self._alone.begin() as connection:
            moved = connection.execute(_FINISH, {"batch": batch_id}).one_or_none()
        return Message("aggregate", batch_id, f"batch={batch_id}") if moved else None

    def claim_aggregate(self, batch_id: str, lease_seconds: float) -> int | None:
        """Take the aggregate of a batch; gives the fence, None if somebody holds it or it is done."""
        free = or_(batches.c.lease_until.is_(None), batches.c.lease_until < Now())
        statement = (
            update(batches)
            .where(batches.c.id == batch_id, batches.c.state == BatchState.AGGREGATING, free)
            .values(
                fence=batches.c.fence + 1,
                attempts=batches.c.attempts + 1,
                lease_until=Now() + lease_seconds,
                not_before=None,
            )
            .returning(batches.c.fence)
        )
        with self._alone.begin() as connection:
            return connection.execute(statement).scalar_one_or_none()

    def aggregate_attempts(self, batch_id: str) -> int:
        """How often the aggregate was claimed."""
        with self._alone.begin() as connection:
            query = select(batches.c.attempts).where(batches.c.id == batch_id)
            return int(connection.execute(query).scalar_one())

    def extend_aggregate(self, batch_id: str, fence: int, lease_seconds: float) -> bool:
        """Keep the aggregate for longer."""
        statement = update(batches).where(batches.c.id == batch_id, batches.c.fence == fence)
        with self._alone.begin() as connection:
            return connection.execute(statement.values(lease_until=Now() + lease_seconds)).rowcount == 1

    def save_aggregate(self, batch_id: str, fence: int, files: dict[str, Blob], error: str | None = None) -> bool:
        """End a batch with its aggregate; a batch that somebody cancelled ends as cancelled."""
        state = _ended_state()
        body = {name: {"sha256": blob.sha256, "size": blob.size} for name, blob in files.items()}
        statement = (
            update(batches)
            .where(batches.c.id == batch_id, batches.c.fence == fence, batches.c.state == BatchState.AGGREGATING)
            .values(state=state, aggregate=body, error=error, finished_at=Now(), lease_until=None, dispatched_at=None)
        )
        with self._alone.begin() as connection:
            return connection.execute(statement).rowcount == 1

    def hand_back_aggregate(self, batch_id: str, fence: int, delay_seconds: float) -> None:
        """Let go of an aggregate so that it is tried again later."""
        statement = update(batches).where(batches.c.id == batch_id, batches.c.fence == fence)
        with self._alone.begin() as connection:
            later = {"lease_until": None, "dispatched_at": None, "not_before": Now() + delay_seconds}
            connection.execute(statement.values(**later))

    def _move(self, batch_id: str, before: Sequence[BatchState], after: BatchState) -> bool:
        statement = update(batches).where(batches.c.id == batch_id, batches.c.state.in_(before))
        with self._alone.begin() as connection:
            return connection.execute(statement.values(state=after)).rowcount == 1


def _set_budget(connection: Connection, batch_id: str, budget: Mapping[str, float]) -> None:
    mine = batches.c.id == batch_id
    before = connection.execute(select(batches.c.settings).where(mine).with_for_update()).scalar_one()
    # Said by whoever may submit: a regrade takes it over like the rest of what was submitted.
    said = {name: {"value": value, "source": "submit"} for name, value in budget.items()}
    connection.execute(update(batches).where(mine).values(settings={**before, **said}))


def insert_batch(connection: Connection, row: dict[str, Any], planned: Iterable[NewRun]) -> None:
    """Write a batch and all its runs, with what they bring along; inside the caller's transaction."""
    connection.execute(insert(batches).values(**row, created_at=Now()))
    pending = iter(planned)
    while page := list(islice(pending, _INSERT_SIZE)):
        connection.execute(insert(runs), [_new_run(row, run) for run in page])
        if page[0].given is not None:
            _insert_given(connection, row["id"], page)


def next_iteration(connection: Connection, team_id: str, skill: str) -> int:
    """The number of a skill's next batch."""
    of_skill = select(func.coalesce(func.max(batches.c.iteration), 0)).join(
        skill_versions, skill_versions.c.id == batches.c.skill_version_id
    )
    query = of_skill.where(skill_versions.c.team_id == team_id, skill_versions.c.skill == skill)
    return int(connection.execute(query).scalar_one()) + 1


def _where_it_stands() -> Any:
    return case((runs.c.stage == Stage.WAITING, runs.c.entry), else_=runs.c.stage)


def _ended_state() -> Any:
    return case((batches.c.cancelled_at.is_(None), BatchState.FINISHED), else_=BatchState.CANCELLED)


def _new_run(batch: dict[str, Any], run: NewRun) -> dict[str, Any]:
    return {
        "batch_id": batch["id"],
        "team_id": batch["team_id"],
        "position": run.position,
        "case_position": run.case_position,
        "case_label": run.case_label[:200],
        "configuration": run.configuration,
        "role": run.role or ASIDE,
        "run_number": run.run_number,
        "skill_version_id": run.skill_version_id,
        "stage": Stage.WAITING,
        **(_given_columns(run.given) if run.given else {}),
    }


def _given_columns(given: Given) -> dict[str, Any]:
    """Where a given run stands: as if its first stages had been claimed once each."""
    is_settled = given.outcome is not None
    return {
        "stage": Stage.SETTLED if is_settled else Stage.WAITING,
        "entry": Stage.CHECK if given.was_executed else Stage.EXECUTE,
        "outcome": given.outcome,
        "error": given.error,
        "fence": FIRST_FENCE[Stage.JUDGE if is_settled else Stage.EXECUTE],
        "facts": given.facts,
    }


def _insert_given(connection: Connection, batch_id: str, page: Sequence[NewRun]) -> None:
    """The artifacts and reviews of given runs; their blobs are in the artifact store already."""
    mine = (runs.c.batch_id == batch_id, runs.c.position.between(page[0].position, page[-1].position))
    rows = connection.execute(select(runs.c.position, runs.c.id).where(*mine)).all()
    ids = {row.position: row.id for row in rows}
    brought = [(ids[run.position], run.given) for run in page if run.given]
    files = [_artifact(run_id, name, blob) for run_id, given in brought for name, blob in given.files.items()]
    if files:
        connection.execute(insert(artifacts), files)
    for run_id, given in brought:
        for review in given.reviews:
            connection.execute(insert(reviews).values(run_id=run_id, batch_id=batch_id, **_review(review)))
    ended = update(runs).where(*mine, runs.c.stage == Stage.SETTLED)
    connection.execute(ended.values(settled_at=Now()))


def _artifact(run_id: int, name: str, blob: Blob) -> dict[str, Any]:
    made_by = DECISIONS.get(name, Stage.EXECUTE)
    return {"run_id": run_id, "name": name, "sha256": blob.sha256, "size": blob.size, "stage": made_by}


def _review(review: GivenReview) -> dict[str, Any]:
    said_at = Now() if review.said_at is None else review.said_at
    return {"author": review.author, "feedback": review.feedback, "created_at": said_at, "updated_at": said_at}


def batch_row(row: Row[Any]) -> BatchRow:
    """A batch as the store hands it out."""
    return BatchRow(
        id=row.id,
        team_id=row.team_id,
        suite_id=row.suite_id,
        skill_version_id=row.skill_version_id,
        control_version_id=row.control_version_id,
        iteration=row.iteration,
        state=BatchState(row.state),
        settings=row.settings,
        inputs=row.inputs,
        priority=row.priority,
        max_open=row.max_open,
        cancelled_at=row.cancelled_at,
        aggregate=row.aggregate,
        error=row.error,
        created_at=row.created_at,
        started_at=row.started_at,
        finished_at=row.finished_at,
        regrade_of=row.regrade_of,
    )
