"""Runs that come with their artifacts: never executed, graded or settled from the start, on both databases."""

import pytest
from sqlalchemy import func, select
from support.rows import add_batch

from schemas.states import BatchState, Outcome, Role, Stage
from service.admission import choose
from service.storage.reviews import ReviewRows
from service.storage.rows import Blob, Claim, Given, GivenReview, NewRun
from service.storage.store import Store
from service.storage.tables import runs as run_table

FILES = {"transcript.md": Blob("a" * 64, 3), "outputs/a.txt": Blob("b" * 64, 5)}
GRADED = {**FILES, "structural.json": Blob("c" * 64, 2), "grading.json": Blob("d" * 64, 2)}


def given_batch(store: Store, *given: Given) -> tuple[str, list[int]]:
    runs = [NewRun(n, 0, "1", "with_skill", Role.TREATMENT, n + 1, None, one) for n, one in enumerate(given)]
    batch_id = add_batch(store, planned=runs)
    return batch_id, [run.id for run in store.runs.of_batch(batch_id)]


def claimed(store: Store, run: int, stage: Stage) -> Claim:
    claim = store.runs.claim(run, stage, "w", 60)
    assert claim is not None
    return claim


def names(store: Store, run: int) -> set[str]:
    return set(store.runs.files(run))


def test_a_given_run_enters_at_check_with_its_artifacts(store: Store) -> None:
    _, (run,) = given_batch(store, Given(FILES, {"tokens": 7}))

    (message,) = store.dispatch.admit(10, choose)

    assert (message.stage, message.id) == (Stage.CHECK, run)
    assert store.runs.files(run) == FILES
    assert store.runs.claim(run, Stage.EXECUTE, "w", 60) is None
    assert claimed(store, run, Stage.CHECK).facts == {"tokens": 7}


def test_a_batch_of_settled_runs_only_awaits_its_aggregate(store: Store) -> None:
    batch_id, (run, other) = given_batch(
        store, Given(GRADED, {}, Outcome.SCORED), Given(FILES, {}, Outcome.JUDGE_ERROR, "grading.json is missing")
    )

    message = store.batches.finish_if_settled(batch_id)
    found = store.runs.one(other)

    assert message is not None and store.dispatch.admit(10, choose) == []
    assert store.batches.progress(batch_id).outcomes == {"scored": 1, "judge_error": 1}
    assert found is not None and found.error == "grading.json is missing" and found.settled_at is not None
    assert names(store, run) == set(GRADED)


def test_many_pages_of_given_runs_each_keep_their_own_files(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("service.storage.batches._INSERT_SIZE", 2)
    each = [Given({f"outputs/{n}.txt": Blob(str(n) * 64, n)}, {"n": n}) for n in range(5)]

    _, ids = given_batch(store, *each)

    assert [names(store, run) for run in ids] == [{f"outputs/{n}.txt"} for n in range(5)]
    assert [store.runs.one(run).facts for run in ids] == [{"n": n} for n in range(5)]  # type: ignore[union-attr]


def test_a_retried_given_run_replaces_what_was_decided_and_keeps_what_came_with_it(store: Store) -> None:
    batch_id, (run,) = given_batch(store, Given(GRADED, {}, Outcome.JUDGE_ERROR, "why"))
    assert store.batches.retry(batch_id, executes=False) == 1
    store.dispatch.admit(10, choose)

    store.runs.advance(claimed(store, run, Stage.CHECK), Stage.JUDGE, {"structural.json": Blob("e" * 64, 1)}, {})

    assert names(store, run) == {*FILES, "structural.json"}


def test_a_failed_judgement_of_a_given_run_can_be_retried_with_files_of_the_same_name(store: Store) -> None:
    batch_id, (run,) = given_batch(store, Given(FILES, {}))
    store.dispatch.admit(10, choose)
    kept = {"grading.json": Blob("d" * 64, 1)}
    store.runs.advance(claimed(store, run, Stage.CHECK), Stage.JUDGE, {}, {})
    store.runs.settle(claimed(store, run, Stage.JUDGE), Outcome.JUDGE_ERROR, "no answer", kept, {})

    assert store.batches.retry(batch_id, executes=False) == 1
    store.dispatch.admit(10, choose)
    store.runs.settle(claimed(store, run, Stage.JUDGE), Outcome.SCORED, None, kept, {})

    assert names(store, run) == {*FILES, "grading.json"}


def test_a_given_run_whose_execution_failed_is_never_started_by_a_retry(store: Store) -> None:
    batch_id, _ = given_batch(store, Given({}, {}, Outcome.TIMEOUT, "too slow", was_executed=False))

    assert store.batches.retry(batch_id, executes=False) == 0
    assert store.dispatch.admit(10, choose) == []


def test_a_configuration_outside_the_comparison_is_listed_last_and_has_no_role(store: Store) -> None:
    arms = [("zeta", None), ("old_skill", Role.CONTROL), ("new_skill", Role.TREATMENT)]
    planned = [NewRun(n, 0, "1", name, role, 1, None, Given({}, {})) for n, (name, role) in enumerate(arms)]

    batch_id = add_batch(store, planned=planned)

    in_order = [("new_skill", Role.TREATMENT), ("old_skill", Role.CONTROL), ("zeta", None)]
    assert store.runs.arms(batch_id) == in_order
    assert [(run.configuration, run.role) for run in store.runs.of_cases(batch_id, 0, 0)] == in_order


def test_reviews_come_with_their_run_and_keep_their_time(store: Store) -> None:
    said = (GivenReview("ann", "too long", 1_700_000_000.0), GivenReview("bob", "fine"))
    batch_id, (run,) = given_batch(store, Given(FILES, {}, Outcome.SCORED, reviews=said))

    found = ReviewRows(store.engine).of_batch(batch_id)

    assert {(one.run_id, one.author, one.feedback) for one in found} == {(run, "ann", "too long"), (run, "bob", "fine")}
    assert {one.updated_at for one in found if one.author == "ann"} == {1_700_000_000.0}


def test_a_batch_whose_given_runs_cannot_be_written_is_not_written_at_all(store: Store) -> None:
    twice = [NewRun(0, 0, "1", "with_skill", Role.TREATMENT, n, None, Given(FILES, {})) for n in (1, 2)]

    with pytest.raises(Exception, match=r"UNIQUE|unique"):
        add_batch(store, planned=twice)

    with store.engine.begin() as connection:
        assert connection.execute(select(func.count()).select_from(run_table)).scalar_one() == 0


def test_a_batch_says_which_one_it_regrades(store: Store) -> None:
    old = add_batch(store)
    new = add_batch(store, regrade_of=old)

    found, other = store.batches.one(new), store.batches.one(old)

    assert found is not None and found.regrade_of == old and found.state is BatchState.ACCEPTED
    assert other is not None and other.regrade_of is None
