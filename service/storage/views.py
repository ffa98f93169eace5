"""What doors look at: pages of batches, runs and skills, and what changed since they looked last. Reads only."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, Row, func, select

from schemas.states import BatchState, Outcome, Stage
from service.storage.batches import batch_row
from service.storage.clock import Now
from service.storage.progress import count_runs, progress_of
from service.storage.rows import BatchRow, Progress, RunRow
from service.storage.runs import run_row
from service.storage.tables import attempts, batches, runs, skill_versions


@dataclass(frozen=True)
class BatchLine:
    """A batch in a list, with the name of its skill."""

    batch: BatchRow
    skill: str
    version: str


@dataclass(frozen=True)
class SkillLine:
    """A skill in a list."""

    name: str
    versions: int
    newest_at: float


@dataclass(frozen=True)
class RunEvent:
    """One stage of one run that ended, somehow; ids grow in the order of writing."""

    id: int
    batch_id: str
    run_id: int
    case: str
    configuration: str
    run_number: int
    stage: str
    result: str
    error: str | None
    ended_at: float


class Views:
    """Questions that change nothing."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def batches(
        self,
        team_id: str,
        before: str | None = None,
        limit: int = 50,
        state: BatchState | None = None,
        skill: str | None = None,
    ) -> list[BatchLine]:
        """A page of a team's batches, newest first."""
        columns = (skill_versions.c.skill, skill_versions.c.number)
        query = select(batches, *columns).join(skill_versions, skill_versions.c.id == batches.c.skill_version_id)
        query = query.where(batches.c.team_id == team_id)
        if before is not None:
            query = query.where(batches.c.id < before)
        if state is not None:
            query = query.where(batches.c.state == state)
        if skill is not None:
            query = query.where(skill_versions.c.skill == skill)
        with self._engine.begin() as connection:
            rows = connection.execute(query.order_by(batches.c.id.desc()).limit(limit)).all()
        return [BatchLine(batch_row(row), row.skill, f"v{row.number}") for row in rows]

    def runs(
        self,
        batch_id: str,
        after: int = -1,
        limit: int = 100,
        stage: Stage | None = None,
        outcome: Outcome | None = None,
        configuration: str | None = None,
        case: str | None = None,
    ) -> list[RunRow]:
        """A page of a batch's runs in the order of admission."""
        query = select(runs).where(runs.c.batch_id == batch_id, runs.c.position > after)
        asked = {"stage": stage, "outcome": outcome, "configuration": configuration, "case_label": case}
        for name, value in asked.items():
            if value is not None:
                query = query.where(runs.c[name] == value)
        with self._engine.begin() as connection:
            return [run_row(row) for row in connection.execute(query.order_by(runs.c.position).limit(limit))]

    def team_of_run(self, run_id: int) -> str | None:
        """Whose run it is."""
        with self._engine.begin() as connection:
            return connection.execute(select(runs.c.team_id).where(runs.c.id == run_id)).scalar_one_or_none()

    def states(self, batch_ids: Sequence[str]) -> dict[str, tuple[BatchRow, Progress]]:
        """State and counts of many batches, in two questions."""
        with self._engine.begin() as connection:
            found = connection.execute(select(batches).where(batches.c.id.in_(batch_ids))).all()
            counts = connection.execute(count_runs(batch_ids)).all()
        return {row.id: (batch_row(row), progress_of(row.id, counts)) for row in found}

    def events(self, batch_ids: Sequence[str], after: int, settle_seconds: float, limit: int = 1_000) -> list[RunEvent]:
        """What ended after the given id; the newest moment is left for later, as ids may be written out of order."""
        columns = (runs.c.batch_id, runs.c.case_label, runs.c.configuration, runs.c.run_number)
        query = select(attempts, *columns).join(runs, runs.c.id == attempts.c.run_id)
        query = query.where(attempts.c.id > after, runs.c.batch_id.in_(batch_ids))
        query = query.where(attempts.c.ended_at < Now() - settle_seconds)
        with self._engine.begin() as connection:
            rows = connection.execute(query.order_by(attempts.c.id).limit(limit)).all()
        return [_event(row) for row in rows]

    def newest_event(self, settle_seconds: float) -> int:
        """The id of the newest attempt of anybody, bar the last moment."""
        query = select(attempts.c.id).where(attempts.c.ended_at < Now() - settle_seconds)
        with self._engine.begin() as connection:
            return int(connection.execute(query.order_by(attempts.c.id.desc()).limit(1)).scalar_one_or_none() or 0)

    def skills(self, team_id: str, after: str = "", limit: int = 100) -> list[SkillLine]:
        """A page of a team's skills by name."""
        columns = (skill_versions.c.skill, func.count().label("versions"), func.max(skill_versions.c.created_at))
        query = select(*columns).where(skill_versions.c.team_id == team_id, skill_versions.c.skill > after)
        query = query.group_by(skill_versions.c.skill).order_by(skill_versions.c.skill).limit(limit)
        with self._engine.begin() as connection:
            return [SkillLine(*row) for row in connection.execute(query)]

    def finished_batches(self, version_ids: Sequence[str]) -> list[BatchRow]:
        """Finished batches of these skill versions, oldest first."""
        query = select(batches).where(batches.c.skill_version_id.in_(version_ids))
        query = query.where(batches.c.state == BatchState.FINISHED).order_by(batches.c.id)
        with self._engine.begin() as connection:
            return [batch_row(row) for row in connection.execute(query)]


def _event(row: Row[Any]) -> RunEvent:
    run = (row.run_id, row.case_label, row.configuration, row.run_number)
    return RunEvent(row.id, row.batch_id, *run, row.stage, row.result, row.error, row.ended_at)
