"""Comparisons on both databases: claimed once, ended once, found again when they stand still."""

import pytest
from sqlalchemy import update
from support.rows import add_batch

from schemas.states import ComparisonState
from service.storage.comparisons import Side
from service.storage.rows import Blob, new_id
from service.storage.store import Store
from service.storage.tables import batches, comparisons

FILES = {"summary.json": Blob("a" * 64, 3)}


@pytest.fixture
def comparison(store: Store) -> str:
    return add_comparison(store)


def add_comparison(store: Store, team: str = "default") -> str:
    sides = [add_batch(store, team=team) for _ in range(2)]
    batch = store.batches.one(sides[0])
    assert batch is not None
    new = {"id": new_id(), "team_id": batch.team_id, "suite_id": batch.suite_id, "settings": {"judge_model": "m"}}
    made = [Side(one, "with_skill", batch.skill_version_id, f"batch {one}") for one in sides]
    store.comparisons.add(new, *made)
    return str(new["id"])


def expire(store: Store, comparison_id: str) -> None:
    with store.engine.begin() as connection:
        mine = update(comparisons).where(comparisons.c.id == comparison_id)
        connection.execute(mine.values(lease_until=1.0))


def test_a_comparison_is_claimed_once_and_by_no_second_message(store: Store, comparison: str) -> None:
    first = store.comparisons.claim(comparison, "one", 30)

    assert first is not None and first.comparison.state is ComparisonState.RUNNING
    assert store.comparisons.claim(comparison, "two", 30) is None


def test_whoever_lost_the_lease_saves_nothing(store: Store, comparison: str) -> None:
    slow = store.comparisons.claim(comparison, "slow", 30)
    expire(store, comparison)
    quick = store.comparisons.claim(comparison, "quick", 30)
    assert slow is not None and quick is not None

    assert not store.comparisons.finish(slow, FILES, {}, "won")
    assert not store.comparisons.extend(slow, 30)
    assert store.comparisons.finish(quick, FILES, {"comparison-1.json": {"A": "x", "B": "y"}}, "lost")
    found = store.comparisons.one(comparison)
    assert found is not None
    assert (found.state, found.result, found.attempts) == (ComparisonState.FINISHED, "lost", 2)
    assert found.files == {"summary.json": {"sha256": "a" * 64, "size": 3}}
    assert found.assignment == {"comparison-1.json": {"A": "x", "B": "y"}}


def test_an_ended_comparison_is_not_claimed_again(store: Store, comparison: str) -> None:
    claim = store.comparisons.claim(comparison, "one", 30)
    assert claim is not None
    assert store.comparisons.fail(claim, "the judge is gone")

    assert store.comparisons.claim(comparison, "two", 30) is None
    assert store.comparisons.idle(0.0) == []
    found = store.comparisons.one(comparison)
    assert found is not None and (found.state, found.error) == (ComparisonState.FAILED, "the judge is gone")


def test_a_lease_that_ran_out_is_sent_again_and_a_current_one_is_not(store: Store, comparison: str) -> None:
    assert store.comparisons.claim(comparison, "one", 30)
    assert store.comparisons.idle(0.0) == []

    expire(store, comparison)

    assert [message.id for message in store.comparisons.idle(1_000.0)] == [comparison]


def test_a_message_nobody_took_up_is_sent_again_after_a_while(store: Store, comparison: str) -> None:
    assert store.comparisons.idle(1_000.0) == []
    assert [(message.stage, message.id) for message in store.comparisons.idle(-1.0)] == [("compare", comparison)]


def test_a_comparison_handed_back_waits_until_it_is_due(store: Store, comparison: str) -> None:
    claim = store.comparisons.claim(comparison, "one", 30)
    assert claim is not None
    assert store.comparisons.hand_back(claim, 1_000.0, "the model is busy", counts=True)

    assert store.comparisons.idle(-1.0) == []
    assert store.comparisons.claim(comparison, "two", 30) is None


def test_an_attempt_that_got_on_does_not_count(store: Store, comparison: str) -> None:
    for _ in range(3):
        claim = store.comparisons.claim(comparison, "one", 30)
        assert claim is not None
        assert store.comparisons.hand_back(claim, -1.0, "the model is busy", counts=False)

    last = store.comparisons.claim(comparison, "one", 30)
    assert last is not None and last.comparison.attempts == 1


def test_a_team_lists_its_own_comparisons_newest_first(store: Store) -> None:
    mine = [add_comparison(store, "mine") for _ in range(3)]
    add_comparison(store, "theirs")

    team = store.teams.named("mine").id
    assert [one.id for one in store.comparisons.of_team(team)] == mine[::-1]
    assert [one.id for one in store.comparisons.of_team(team, before=mine[1])] == mine[:1]


def test_batches_of_a_version_are_found_as_treatment_and_as_control(store: Store) -> None:
    batch = store.batches.one(add_batch(store))
    assert batch is not None
    other = add_batch(store, control_version_id=batch.skill_version_id)
    with store.engine.begin() as connection:
        connection.execute(update(batches).values(state="finished"))

    found = store.comparisons.batch_of_version(batch.skill_version_id)

    assert [(one, arm) for one, arm, _suite in found] == [(other, "new_skill"), (batch.id, "with_skill")]
