"""A batch is accepted whole, ends once, and can be stopped, paused and continued."""

import threading

from support.rows import add_batch

from schemas.states import BatchState, Outcome, Stage
from service.admission import choose
from service.storage.rows import Blob, Message
from service.storage.store import Store


def settle_all(store: Store, outcome: Outcome = Outcome.SCORED) -> list[int]:
    ids = [int(message.id) for message in store.dispatch.admit(1000, choose)]
    for run in ids:
        claim = store.runs.claim(run, Stage.EXECUTE, "w", 60)
        assert claim is not None
        store.runs.settle(claim, outcome, None, {}, {})
    return ids


def state_of(store: Store, batch_id: str) -> BatchState:
    batch = store.batches.one(batch_id)
    assert batch is not None
    return batch.state


def test_a_batch_with_an_open_run_is_not_aggregated(store: Store) -> None:
    batch_id = add_batch(store, 2)
    store.dispatch.admit(1, choose)

    assert store.batches.finish_if_settled(batch_id) is None


def test_the_last_run_to_settle_starts_the_aggregate_once(store: Store) -> None:
    batch_id = add_batch(store, 3)
    settle_all(store)

    first = store.batches.finish_if_settled(batch_id)
    second = store.batches.finish_if_settled(batch_id)

    assert first is not None and first.stage == "aggregate" and first.id == batch_id
    assert second is None
    assert state_of(store, batch_id) is BatchState.AGGREGATING


def test_two_last_finishers_at_once_start_one_aggregate(store: Store) -> None:
    for _ in range(10):
        batch_id = add_batch(store, 2)
        runs = [int(message.id) for message in store.dispatch.admit(1000, choose)]
        started: list[Message | None] = []

        def finish(run: int, batch_id: str = batch_id, started: list[Message | None] = started) -> None:
            claim = store.runs.claim(run, Stage.EXECUTE, "w", 60)
            assert claim is not None
            store.runs.settle(claim, Outcome.SCORED, None, {}, {})
            started.append(store.batches.finish_if_settled(batch_id))

        threads = [threading.Thread(target=finish, args=(run,)) for run in runs]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        assert len(started) == 2 and sum(message is not None for message in started) == 1


def test_an_aggregate_is_saved_by_the_one_who_holds_it(store: Store) -> None:
    batch_id = add_batch(store, 1)
    settle_all(store)
    store.batches.finish_if_settled(batch_id)
    old = store.batches.claim_aggregate(batch_id, -1)
    new = store.batches.claim_aggregate(batch_id, 60)
    assert old is not None and new is not None

    assert not store.batches.save_aggregate(batch_id, old, {})
    assert store.batches.save_aggregate(batch_id, new, {"benchmark.json": Blob("c" * 64, 9)})
    assert store.batches.claim_aggregate(batch_id, 60) is None
    batch = store.batches.one(batch_id)
    assert batch is not None and batch.state is BatchState.FINISHED
    assert batch.aggregate == {"benchmark.json": {"sha256": "c" * 64, "size": 9}}


def test_cancelling_settles_what_is_open_and_stops_what_is_at_work(store: Store) -> None:
    batch_id = add_batch(store, 3)
    [first, *_] = [int(message.id) for message in store.dispatch.admit(2, choose)]
    claim = store.runs.claim(first, Stage.EXECUTE, "w", 60)
    assert claim is not None

    assert store.batches.cancel(batch_id)

    assert store.batches.progress(batch_id).outcomes == {"cancelled": 3}
    assert store.runs.extend([(claim.run_id, claim.fence)], 60) == set()
    assert store.runs.settle(claim, Outcome.SCORED, None, {}, {}) is None
    assert not store.batches.cancel(batch_id)
    assert store.batches.finish_if_settled(batch_id) is not None
    fence = store.batches.claim_aggregate(batch_id, 60)
    assert fence is not None and store.batches.save_aggregate(batch_id, fence, {})
    assert state_of(store, batch_id) is BatchState.CANCELLED


def test_a_retry_continues_at_the_stage_that_failed(store: Store) -> None:
    batch_id = add_batch(store, 2)
    good, bad = (int(message.id) for message in store.dispatch.admit(10, choose))
    for run, outcome in ((good, Outcome.SCORED), (bad, Outcome.JUDGE_ERROR)):
        for stage in (Stage.EXECUTE, Stage.CHECK):
            claim = store.runs.claim(run, stage, "w", 60)
            assert claim is not None
            store.runs.advance(claim, Stage.CHECK if stage is Stage.EXECUTE else Stage.JUDGE, {}, {})
        claim = store.runs.claim(run, Stage.JUDGE, "w", 60)
        assert claim is not None
        store.runs.settle(claim, outcome, None, {}, {})
    store.batches.finish_if_settled(batch_id)
    fence = store.batches.claim_aggregate(batch_id, 60)
    assert fence is not None
    store.batches.save_aggregate(batch_id, fence, {})

    count = store.batches.retry(batch_id)

    assert count == 1 and state_of(store, batch_id) is BatchState.RUNNING
    assert [(message.id, message.stage) for message in store.dispatch.admit(10, choose)] == [(bad, "judge")]


def test_iterations_and_versions_count_up(store: Store) -> None:
    first, second = (store.batches.one(add_batch(store)) for _ in range(2))

    assert first is not None and second is not None
    assert (first.iteration, second.iteration) == (1, 2)
    assert first.skill_version_id == second.skill_version_id
