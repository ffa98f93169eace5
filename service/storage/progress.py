"""How far batches are: counts by stage and outcome, and how fast runs ended of late, in one question."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Row, Select, func, select

from schemas.states import Outcome
from service.storage.clock import Now
from service.storage.rows import Progress, Recent
from service.storage.tables import runs

# A batch may have been paused, stalled or retried before: only what ended of late tells how fast it is now.
RECENT_SECONDS = 600.0


def count_runs(batch_ids: Sequence[str]) -> Select[Any]:
    """The runs of these batches, counted; one row for each batch, stage and outcome."""
    now = select(Now()).scalar_subquery()  # else the clock would be read for every run
    # A run that was given, or cancelled, took no work: it says nothing about the others.
    is_recent = (
        runs.c.settled_at > now - RECENT_SECONDS,
        runs.c.started_at.is_not(None),
        runs.c.outcome != Outcome.CANCELLED,
    )
    kind = (runs.c.batch_id, runs.c.stage, runs.c.outcome)
    counts = (
        func.count().label("runs"),
        func.count().filter(*is_recent).label("recent"),
        (now - func.min(runs.c.started_at).filter(*is_recent)).label("seconds"),
    )
    return select(*kind, *counts).where(runs.c.batch_id.in_(batch_ids)).group_by(*kind)


def progress_of(batch_id: str, rows: Iterable[Row[Any]]) -> Progress:
    """What was counted of one batch."""
    stages: dict[str, int] = {}
    outcomes: dict[str, int] = {}
    mine = [row for row in rows if row.batch_id == batch_id]
    for row in mine:
        stages[row.stage] = stages.get(row.stage, 0) + row.runs
        if row.outcome:
            outcomes[row.outcome] = outcomes.get(row.outcome, 0) + row.runs
    return Progress(stages, outcomes, _recent(mine))


def _recent(rows: Sequence[Row[Any]]) -> Recent:
    seconds = max((row.seconds for row in rows if row.recent), default=0.0)
    return Recent(sum(row.recent for row in rows), min(seconds, RECENT_SECONDS))
