"""What stands still is seen: leases that ran out, messages that were lost, batches nobody ended."""

from sqlalchemy import update
from support.rows import add_batch

from schemas.states import Outcome, Stage
from service.admission import choose
from service.storage.clock import Now
from service.storage.store import Store
from service.storage.tables import runs


def aged(store: Store, run: int, seconds: float) -> None:
    with store.engine.begin() as connection:
        connection.execute(update(runs).where(runs.c.id == run).values(dispatched_at=Now() - seconds))


def test_the_window_bounds_what_is_open(store: Store) -> None:
    add_batch(store, 10)

    assert len(store.dispatch.admit(4, choose)) == 4
    assert store.dispatch.admit(4, choose) == []
    assert len(store.dispatch.admit(7, choose)) == 3


def test_runs_are_admitted_in_their_order(store: Store) -> None:
    batch_id = add_batch(store, 6)

    admitted = [int(message.id) for message in store.dispatch.admit(6, choose)]

    assert [row.id for row in store.runs.of_batch(batch_id)] == admitted


def test_a_late_small_batch_of_another_team_is_admitted_beside_a_large_one(store: Store) -> None:
    add_batch(store, 50, team="large")
    store.dispatch.admit(10, choose)
    small = add_batch(store, 2, team="small")

    admitted = store.dispatch.admit(12, choose)

    assert {small in message.label for message in admitted} == {True} and len(admitted) == 2


def test_a_batch_with_few_runs_leaves_its_slots_to_others(store: Store) -> None:
    add_batch(store, 1, team="small")
    add_batch(store, 20, team="large")

    assert len(store.dispatch.admit(10, choose)) == 10


def test_a_lease_that_ran_out_is_sent_again(store: Store) -> None:
    add_batch(store, 1)
    [message] = store.dispatch.admit(10, choose)
    store.runs.claim(int(message.id), Stage.EXECUTE, "dead:1", -1)

    again, ended = store.dispatch.expired(max_attempts=3)

    assert [found.id for found in again] == [message.id] and not ended
    assert store.dispatch.expired(max_attempts=3) == ([], set())
    assert [step["result"] for step in store.runs.story(int(message.id))] == ["lost"]


def test_a_run_whose_workers_keep_dying_is_given_up(store: Store) -> None:
    batch_id = add_batch(store, 1)
    [message] = store.dispatch.admit(10, choose)
    for _ in range(3):
        store.runs.claim(int(message.id), Stage.EXECUTE, "dead:1", -1)
        store.dispatch.expired(max_attempts=3)

    row = store.runs.one(int(message.id))

    assert row is not None and row.outcome is Outcome.INFRA_ERROR and "3 attempts" in (row.error or "")
    assert store.dispatch.settled_batches() == [batch_id]


def test_a_message_is_lost_when_the_queue_is_empty_and_nobody_claimed_it(store: Store) -> None:
    add_batch(store, 2)
    old, young = (int(message.id) for message in store.dispatch.admit(10, choose))
    aged(store, old, 60)

    assert store.dispatch.overtaken(Stage.EXECUTE, 5, queue_is_empty=False) == []
    assert [message.id for message in store.dispatch.overtaken(Stage.EXECUTE, 5, queue_is_empty=True)] == [old]
    assert store.dispatch.overtaken(Stage.EXECUTE, 5, queue_is_empty=True) == []
    assert young != old


def test_a_message_is_lost_when_a_later_one_is_being_worked_on(store: Store) -> None:
    add_batch(store, 2)
    old, young = (int(message.id) for message in store.dispatch.admit(10, choose))
    aged(store, old, 60)
    store.runs.claim(young, Stage.EXECUTE, "w", 60)

    assert [message.id for message in store.dispatch.overtaken(Stage.EXECUTE, 5, queue_is_empty=False)] == [old]


def test_after_the_broker_came_back_empty_everything_unheld_is_sent(store: Store) -> None:
    add_batch(store, 3)
    ids = [int(message.id) for message in store.dispatch.admit(10, choose)]
    store.runs.claim(ids[0], Stage.EXECUTE, "w", 60)

    assert {message.id for message in store.dispatch.all_sent()} == set(ids[1:])


def test_the_leases_of_dead_workers_end_at_once(store: Store) -> None:
    add_batch(store, 2)
    one, two = (int(message.id) for message in store.dispatch.admit(10, choose))
    store.runs.claim(one, Stage.EXECUTE, "dead:1", 3600)
    store.runs.claim(two, Stage.EXECUTE, "alive:2", 3600)

    assert set(store.dispatch.holders()) == {"dead:1", "alive:2"}
    assert store.dispatch.expire(["dead:1"]) == 1
    assert [message.id for message in store.dispatch.expired(5)[0]] == [one]


def test_a_batch_that_nobody_ended_and_an_idle_aggregate_are_found(store: Store) -> None:
    batch_id = add_batch(store, 1)
    [message] = store.dispatch.admit(10, choose)
    claim = store.runs.claim(int(message.id), Stage.EXECUTE, "w", 60)
    assert claim is not None
    store.runs.settle(claim, Outcome.SCORED, None, {}, {})

    assert store.dispatch.settled_batches() == [batch_id]
    store.batches.finish_if_settled(batch_id)
    assert store.dispatch.idle_aggregates(3600) == []
    assert [found.id for found in store.dispatch.idle_aggregates(-1)] == [batch_id]
