"""A run is claimed by one, saved by the one who holds it, and settled once."""

import threading

from support.rows import add_batch

from schemas.states import BatchState, Outcome, Stage
from service.admission import choose
from service.storage.rows import Blob, Claim
from service.storage.store import Store


def admitted(store: Store, runs: int = 1) -> tuple[str, list[int]]:
    batch_id = add_batch(store, runs)
    return batch_id, [int(message.id) for message in store.dispatch.admit(100, choose)]


def claimed(store: Store, run_id: int, stage: Stage = Stage.EXECUTE, lease: float = 60) -> Claim:
    claim = store.runs.claim(run_id, stage, "here:1", lease)
    assert claim is not None
    return claim


def test_a_claimed_run_cannot_be_claimed_again(store: Store) -> None:
    _, [run] = admitted(store)

    first = store.runs.claim(run, Stage.EXECUTE, "a", 60)
    second = store.runs.claim(run, Stage.EXECUTE, "b", 60)

    assert first is not None and first.fence == 1 and first.attempt == 1
    assert second is None


def test_of_many_claims_at_once_one_wins(store: Store) -> None:
    _, [run] = admitted(store)
    wins: list[Claim | None] = []
    threads = [
        threading.Thread(target=lambda: wins.append(store.runs.claim(run, Stage.EXECUTE, "t", 60))) for _ in range(8)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sum(win is not None for win in wins) == 1 and len(wins) == 8


def test_a_message_for_a_stage_that_is_over_claims_nothing(store: Store) -> None:
    _, [run] = admitted(store)
    store.runs.advance(claimed(store, run), Stage.CHECK, {}, {})

    assert store.runs.claim(run, Stage.EXECUTE, "late", 60) is None


def test_a_lease_that_ran_out_can_be_claimed_and_the_old_fence_saves_nothing(store: Store) -> None:
    _, [run] = admitted(store)
    old = claimed(store, run, lease=-1)
    new = claimed(store, run)

    assert new.fence == old.fence + 1
    assert store.runs.advance(old, Stage.CHECK, {}, {}) is None
    assert store.runs.settle(old, Outcome.SCORED, None, {}, {}) is None
    assert store.runs.advance(new, Stage.CHECK, {}, {}) is not None


def test_advancing_keeps_files_and_facts_and_names_the_next_message(store: Store) -> None:
    batch_id, [run] = admitted(store)

    saved = store.runs.advance(claimed(store, run), Stage.CHECK, {"transcript.md": Blob("a" * 64, 3)}, {"seconds": 1.5})

    assert saved is not None and saved.message is not None
    assert (saved.message.stage, saved.message.id) == ("check", run)
    assert f"batch={batch_id}" in saved.message.label and "configuration=with_skill" in saved.message.label
    assert store.runs.files(run) == {"transcript.md": Blob("a" * 64, 3)}
    row = store.runs.one(run)
    assert row is not None and row.stage is Stage.CHECK and row.facts == {"seconds": 1.5}


def test_a_stage_done_again_replaces_what_the_first_try_left(store: Store) -> None:
    batch_id, [run] = admitted(store)
    store.runs.settle(claimed(store, run), Outcome.EXECUTOR_ERROR, "broke", {"transcript.md": Blob("a" * 64, 1)}, {})
    store.batches.retry(batch_id)
    store.dispatch.admit(100, choose)

    store.runs.advance(claimed(store, run), Stage.CHECK, {"outputs/new.md": Blob("b" * 64, 1)}, {})

    assert list(store.runs.files(run)) == ["outputs/new.md"]


def test_a_run_settles_once(store: Store) -> None:
    _, [run] = admitted(store)
    claim = claimed(store, run)

    first = store.runs.settle(claim, Outcome.SCORED, None, {}, {})
    second = store.runs.settle(claim, Outcome.JUDGE_ERROR, "late", {}, {})

    assert first is not None and first.settled
    assert second is None
    row = store.runs.one(run)
    assert row is not None and row.outcome is Outcome.SCORED and row.error is None


def test_the_heartbeat_keeps_what_is_held_and_names_what_is_lost(store: Store) -> None:
    _, runs = admitted(store, 2)
    kept, lost = (claimed(store, run) for run in runs)
    store.runs.settle(lost, Outcome.TIMEOUT, "slow", {}, {})

    still = store.runs.extend([(kept.run_id, kept.fence), (lost.run_id, lost.fence)], 60)

    assert still == {kept.run_id}


def test_a_run_handed_back_is_not_due_before_its_time(store: Store) -> None:
    _, [run] = admitted(store)
    store.runs.hand_back(claimed(store, run), 3600, "busy", counts=True)

    assert store.runs.claim(run, Stage.EXECUTE, "x", 60) is None
    assert store.dispatch.handed_back() == []


def test_a_run_handed_back_without_pause_is_sent_again_and_its_attempt_may_not_count(store: Store) -> None:
    _, [run] = admitted(store)
    store.runs.hand_back(claimed(store, run), 0, "worker stopped", counts=False)

    assert [message.id for message in store.dispatch.handed_back()] == [run]
    assert claimed(store, run).attempt == 1


def test_every_attempt_is_part_of_the_story(store: Store) -> None:
    _, [run] = admitted(store)
    store.runs.hand_back(claimed(store, run), 0, "busy", counts=True)
    store.dispatch.handed_back()
    store.runs.advance(claimed(store, run), Stage.CHECK, {}, {})

    story = store.runs.story(run)

    assert [(step["stage"], step["result"], step["error"]) for step in story] == [
        ("execute", "handed_back", "busy"),
        ("execute", "done", None),
    ]
    assert all(step["started_at"] <= step["ended_at"] and step["worker"] == "here:1" for step in story)


def test_a_paused_batch_keeps_its_runs_between_stages(store: Store) -> None:
    batch_id, [run] = admitted(store)
    claim = claimed(store, run)
    assert store.batches.pause(batch_id)

    saved = store.runs.advance(claim, Stage.CHECK, {}, {})

    assert saved is not None and saved.message is None
    assert store.dispatch.admit(100, choose) == []
    assert store.batches.resume(batch_id)
    assert [message.stage for message in store.dispatch.admit(100, choose)] == ["check"]
    batch = store.batches.one(batch_id)
    assert batch is not None and batch.state is BatchState.RUNNING


def test_a_file_written_again_by_a_later_stage_stays_when_that_stage_is_done_again(store: Store) -> None:
    _, [run] = admitted(store)
    store.runs.advance(claimed(store, run), Stage.JUDGE, {"timing.json": Blob("a" * 64, 3)}, {})
    files = {"timing.json": Blob("b" * 64, 4), "grading.json": Blob("c" * 64, 5)}
    store.runs.settle(claimed(store, run, Stage.JUDGE), Outcome.SCORED, None, files, {})
    assert store.runs.files(run) == files

    store.batches.retry(store.runs.one(run).batch_id, [Outcome.SCORED])  # type: ignore[union-attr]
    store.dispatch.admit(100, choose)
    store.runs.settle(claimed(store, run, Stage.JUDGE), Outcome.JUDGE_ERROR, None, {}, {})

    assert store.runs.files(run)["timing.json"] == Blob("b" * 64, 4)
