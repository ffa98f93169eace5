"""The time left follows from runs that ended of late: a pause and a retry begin anew."""

import pytest
from sqlalchemy import update
from support.rows import add_batch

from api.documents import ProgressDocument
from schemas.states import Outcome, Stage
from service.admission import choose
from service.batches import Status
from service.events import Watching
from service.storage.store import Store
from service.storage.tables import runs

HOUR = 3600.0


def wait(store: Store, seconds: float) -> None:
    """Let that much time pass: everything that was is so much longer ago."""
    past = {column.name: column - seconds for column in (runs.c.started_at, runs.c.settled_at)}
    with store.engine.begin() as connection:
        connection.execute(update(runs).values(**past))


def work(store: Store, count: int, seconds: float, outcome: Outcome = Outcome.SCORED) -> None:
    """So many runs begin together, and end that much later."""
    claims = [store.runs.claim(int(one.id), Stage.EXECUTE, "w", 60) for one in store.dispatch.admit(count, choose)]
    wait(store, seconds)
    for claim in claims:
        assert claim is not None
        store.runs.settle(claim, outcome, None, {}, {})


def seconds_left(store: Store, batch_id: str) -> float | None:
    row = store.batches.one(batch_id)
    assert row is not None
    asked = ProgressDocument.of(Status(row, store.batches.progress(batch_id))).eta_seconds
    watched = ProgressDocument.of(Watching(store).look([batch_id], 0).statuses[batch_id]).eta_seconds
    assert watched == (asked if asked is None else pytest.approx(asked, rel=0.2, abs=5))
    return asked


def test_the_pace_is_that_of_runs_that_ended_since_the_first_began(store: Store) -> None:
    batch_id = add_batch(store, 10)
    early = seconds_left(store, batch_id)

    work(store, 4, seconds=100)

    assert early is None
    assert seconds_left(store, batch_id) == pytest.approx(150, rel=0.2)


def test_a_pause_does_not_count_as_work(store: Store) -> None:
    batch_id = add_batch(store, 10)
    work(store, 2, seconds=100)
    store.batches.pause(batch_id)
    paused = seconds_left(store, batch_id)
    wait(store, HOUR)
    store.batches.resume(batch_id)
    resumed = seconds_left(store, batch_id)

    work(store, 4, seconds=100)

    assert (paused, resumed) == (None, None)
    assert seconds_left(store, batch_id) == pytest.approx(100, rel=0.2)


def test_the_time_until_a_retry_does_not_count_as_work(store: Store) -> None:
    batch_id = add_batch(store, 10)
    work(store, 10, seconds=100, outcome=Outcome.JUDGE_ERROR)
    wait(store, 200)
    store.batches.retry(batch_id)
    retried = seconds_left(store, batch_id)

    work(store, 4, seconds=100)

    assert retried is None
    assert seconds_left(store, batch_id) == pytest.approx(150, rel=0.2)


def test_a_batch_that_stands_still_says_nothing_about_its_end(store: Store) -> None:
    batch_id = add_batch(store, 10)
    work(store, 4, seconds=100)

    wait(store, HOUR)

    assert seconds_left(store, batch_id) is None


def test_what_was_cancelled_says_nothing_about_the_pace(store: Store) -> None:
    batch_id = add_batch(store, 10)
    work(store, 4, seconds=100, outcome=Outcome.JUDGE_ERROR)
    store.batches.cancel(batch_id)
    store.batches.retry(batch_id, (Outcome.JUDGE_ERROR,))

    assert seconds_left(store, batch_id) is None


def test_the_pace_looks_back_ten_minutes_at_most(store: Store) -> None:
    batch_id = add_batch(store, 10)

    work(store, 5, seconds=HOUR)

    assert seconds_left(store, batch_id) == pytest.approx(600, rel=0.2)
