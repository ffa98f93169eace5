"""A busy model is waited for by time, not by attempts, and holds no place in the window meanwhile."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import update
from support.fleet import write_skill

from schemas.states import Outcome, Stage
from service.bootstrap import Parts
from service.errors import Unavailable
from service.jobs import Job
from service.leases import Held
from service.limits.budgets import Account, reserved_away
from service.limits.port import RetryLater
from service.settings import Settings
from service.stages import End, settled
from service.storage.rows import RunRow
from service.storage.schema import migrate
from service.storage.tables import attempts, runs
from service.submitting import Submission

HOUR = 3_600.0


class House:
    """One batch whose runs are worked on by hand, and a clock that can be moved."""

    def __init__(self, parts: Parts, skill: Path) -> None:
        self.parts = parts
        accepted = parts.desk.submit(Submission(skill, settings={"command": "true", "runs_per_eval": 1}))
        self.batch_id = accepted.batch_id
        parts.recovery.refill()
        self.run_id = self.rows()[0].id

    def rows(self) -> list[RunRow]:
        return list(self.parts.desk.runs(self.batch_id, "default"))

    def row(self) -> RunRow:
        return next(row for row in self.rows() if row.id == self.run_id)

    def work(self, error: Exception | None = None) -> RunRow:
        """One message's worth of work that ends like this."""

        def act(_job: Job, _held: Held) -> End:
            if error:
                raise error
            return settled(Outcome.SCORED)

        self.parts.stages.work(self.run_id, Stage.EXECUTE, act)
        return self.row()

    def later(self, seconds: float) -> None:
        """What happened, happened that much longer ago; runs that are due are admitted again."""
        with self.parts.store.engine.begin() as connection:
            past = attempts.c.started_at - seconds
            connection.execute(update(attempts).where(attempts.c.run_id == self.run_id).values(started_at=past))
            connection.execute(update(runs).values(not_before=runs.c.not_before - seconds))
        self.parts.recovery.refill()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    settings = Settings(
        data=tmp_path / "data",
        database_url=None,
        sandbox="none",
        max_attempts=2,
        busy_timeout_seconds=6 * HOUR,
        window=1,
    )
    parts = Parts(settings)
    migrate(parts.store.engine)
    yield House(parts, write_skill(tmp_path / "skill", 1))
    parts.close()


BUSY = RetryLater(600.0, "model m is busy (rate_limit_error); again in 600 s")


def test_a_busy_model_costs_no_attempt_however_often_it_happens(house: House) -> None:
    for _ in range(20):
        row = house.work(BUSY)
        assert (row.stage, row.entry, row.attempts, row.outcome) == (Stage.WAITING, Stage.EXECUTE, 0, None)
        house.later(900)
        # The only place of the window went to another run meanwhile: let that one end.
        other = next((one for one in house.rows() if one.id != house.run_id and one.stage is Stage.EXECUTE), None)
        if other is not None:
            house.parts.stages.work(other.id, Stage.EXECUTE, lambda _job, _held: settled(Outcome.SCORED))
            house.parts.recovery.refill()

    assert house.work().outcome is Outcome.SCORED


def test_a_busy_run_leaves_its_place_in_the_window_to_others(house: House) -> None:
    assert [row.stage for row in house.rows()].count(Stage.EXECUTE) == 1

    house.work(BUSY)
    house.parts.recovery.refill()

    assert house.row().stage is Stage.WAITING
    assert [row.id for row in house.rows() if row.stage is Stage.EXECUTE] != [house.run_id]
    assert [row.stage for row in house.rows()].count(Stage.EXECUTE) == 1


def one_place_each(house: House) -> None:
    """So that no other run is in the way of the one we look at."""
    for row in house.rows():
        if row.id != house.run_id:
            house.parts.recovery.refill()
            house.parts.stages.work(row.id, Stage.EXECUTE, lambda _job, _held: settled(Outcome.SCORED))


def test_a_model_busy_for_longer_than_the_bound_is_an_infra_error_that_says_how_long(house: House) -> None:
    house.work(BUSY)
    one_place_each(house)
    house.later(5 * HOUR)
    assert house.work(BUSY).outcome is None
    house.later(1 * HOUR)

    row = house.work(BUSY)

    assert row.outcome is Outcome.INFRA_ERROR
    assert re.fullmatch(
        r"given up after 216\d\d s: model m is busy \(rate_limit_error\); again in 600 s", row.error or ""
    )


def test_a_budget_reserved_away_for_longer_than_the_bound_is_over_budget(house: House) -> None:
    house.work(reserved_away(Account("batch:b")))
    one_place_each(house)
    house.later(6 * HOUR)

    row = house.work(reserved_away(Account("batch:b")))

    assert row.outcome is Outcome.OVER_BUDGET
    assert "the rest of budget batch:b is reserved" in (row.error or "")


def test_a_run_that_is_retried_waits_its_whole_time_again(house: House) -> None:
    house.work(BUSY)
    one_place_each(house)
    house.later(7 * HOUR)
    assert house.work(BUSY).outcome is Outcome.INFRA_ERROR

    house.parts.stages.aggregate(house.batch_id, lambda _batch, _folder: None)

    house.parts.desk.retry(house.batch_id, "default")
    house.later(0)

    assert house.work(BUSY).outcome is None


def test_a_model_that_does_not_answer_at_all_still_counts_attempts(house: House) -> None:
    assert house.work(Unavailable("model m does not answer")).outcome is None
    house.later(60)
    house.parts.recovery.sweep()

    row = house.work(Unavailable("model m does not answer"))

    assert row.outcome is Outcome.INFRA_ERROR
    assert row.error == "given up after 2 attempts: model m does not answer"
