"""The exam of budgets: what both the fleet's and the process's own must do."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from redis import Redis

from schemas.states import Outcome
from service.limits.budgets import (
    RESERVED_SECONDS,
    Account,
    Budgets,
    Ledger,
    OverBudget,
    Reservation,
    Spend,
    empty_ledger,
)
from service.limits.memory_budgets import MemoryBudgets
from service.limits.port import RetryLater
from service.limits.shared_budgets import RedisBudgets

BATCH = Account("batch:b1", max_cost_usd=1.0)
MONTH = Account("team:t1:2026-11", max_tokens=1_000)


@dataclass
class Clock:
    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Exam:
    open: Callable[[Ledger], Budgets]
    clock: Clock


@pytest.fixture(params=["memory", "redis"])
def exam(request: pytest.FixtureRequest) -> Iterator[Exam]:
    clock = Clock()
    if request.param == "memory":
        yield Exam(lambda ledger: MemoryBudgets(ledger, clock), clock)
        return
    with Redis.from_url(request.getfixturevalue("redis_url")) as redis:
        yield Exam(lambda ledger: RedisBudgets(redis, ledger, clock=clock), clock)


@pytest.fixture
def budgets(exam: Exam) -> Budgets:
    return exam.open(empty_ledger)


def reserve(budgets: Budgets, spend: Spend, *accounts: Account) -> Reservation:
    reservation = Reservation(accounts or (BATCH,))
    budgets.reserve(reservation, spend)
    return reservation


def test_what_is_reserved_and_used_is_spent(budgets: Budgets) -> None:
    reservation = reserve(budgets, Spend(0.30, 300), BATCH, MONTH)

    budgets.correct(reservation, Spend(0.07, 70))

    assert budgets.spent(BATCH) == Spend(0.07, 70)
    assert budgets.spent(MONTH) == Spend(0.07, 70)


def test_a_call_that_does_not_fit_what_is_left_is_over_budget(budgets: Budgets) -> None:
    budgets.correct(reserve(budgets, Spend(0.9, 1)), Spend(0.9, 1))

    with pytest.raises(OverBudget) as refused:
        reserve(budgets, Spend(0.2, 1))

    assert (refused.value.outcome, refused.value.account) == (Outcome.OVER_BUDGET, "batch:b1")
    assert "0.9 of 1 USD are spent and this call may take 0.2" in str(refused.value)


def test_the_last_cent_can_be_spent(budgets: Budgets) -> None:
    for _ in range(10):
        budgets.correct(reserve(budgets, Spend(0.1)), Spend(0.1))

    assert budgets.spent(BATCH) == Spend(1.0)


def test_tokens_are_a_budget_too_and_a_refusal_takes_from_nobody(budgets: Budgets) -> None:
    with pytest.raises(OverBudget, match="team:t1"):
        reserve(budgets, Spend(0.1, 1_001), BATCH, MONTH)

    reserve(budgets, Spend(1.0))


def test_when_only_reservations_are_in_the_way_the_call_comes_back_later(budgets: Budgets) -> None:
    held = reserve(budgets, Spend(0.8))
    with pytest.raises(RetryLater):
        reserve(budgets, Spend(0.5))

    budgets.correct(held, Spend(0.1))

    reserve(budgets, Spend(0.5))


def test_over_budget_in_one_account_wins_over_waiting_for_another(budgets: Budgets) -> None:
    reserve(budgets, Spend(0.8))

    with pytest.raises(OverBudget):
        reserve(budgets, Spend(0.5, 2_000), BATCH, MONTH)


def test_reserving_twice_under_one_id_takes_once(budgets: Budgets) -> None:
    reservation = reserve(budgets, Spend(0.5))

    budgets.reserve(reservation, Spend(0.5))

    reserve(budgets, Spend(0.5))


def test_correcting_twice_changes_nothing(budgets: Budgets) -> None:
    reservation = reserve(budgets, Spend(0.5))

    budgets.correct(reservation, Spend(0.2))
    budgets.correct(reservation, Spend(0.2))

    assert budgets.spent(BATCH) == Spend(0.2)


def test_a_reservation_nobody_corrects_counts_as_spent_after_a_while(exam: Exam) -> None:
    budgets = exam.open(empty_ledger)
    reserve(budgets, Spend(0.8))

    exam.clock.now += RESERVED_SECONDS + 1

    with pytest.raises(OverBudget):
        reserve(budgets, Spend(0.5))


def test_a_new_account_starts_with_what_the_ledger_says(exam: Exam) -> None:
    budgets = exam.open(lambda name: Spend(0.95, 10) if name == "batch:b1" else Spend())

    with pytest.raises(OverBudget):
        reserve(budgets, Spend(0.1))


def test_no_account_means_no_limit(budgets: Budgets) -> None:
    nothing = Reservation(())

    budgets.reserve(nothing, Spend(1e6, 10**9))
    budgets.correct(nothing, Spend(1e6, 10**9))


def test_many_threads_never_spend_more_than_there_is(budgets: Budgets) -> None:
    taken: list[int] = []

    def spend() -> None:
        for _ in range(20):
            try:
                reservation = reserve(budgets, Spend(0.02))
            except (OverBudget, RetryLater):
                continue
            taken.append(1)
            budgets.correct(reservation, Spend(0.02))

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(taken) == 50
    assert budgets.spent(BATCH) == Spend(1.0)


def test_redis_that_came_back_empty_is_refilled_from_the_ledger(redis_url: str) -> None:
    with Redis.from_url(redis_url) as redis:
        spent = Spend(0.9)
        budgets = RedisBudgets(redis, lambda _: spent)
        reservation = reserve(budgets, Spend(0.05))

        redis.flushall()
        budgets.correct(reservation, Spend(0.05))

        with pytest.raises(OverBudget):
            reserve(budgets, Spend(0.2))
