"""Limiter and budgets around a request."""

from collections.abc import Mapping
from typing import Any

import pytest

from service.limits.budgets import Account, OverBudget, Reservation, Spend
from service.limits.gate import Gate
from service.limits.headers import seen_in
from service.limits.hook import LimitsHook
from service.limits.memory import MemoryLimiter
from service.limits.memory_budgets import MemoryBudgets
from service.limits.port import Policy, Purpose, Rate, RetryLater, Seen
from service.models.port import Attempt, Call, Hook, Tokens

BATCH = Account("batch:b1", max_cost_usd=1.0, max_tokens=100_000)


class Room:
    """A hook with all its parts at hand."""

    def __init__(self, rate: Rate | None = None, account: Account = BATCH, price: float | None = 0.001) -> None:
        self.limiter = MemoryLimiter(Policy(default_rate=rate or Rate()))
        self.budgets = MemoryBudgets()
        self.account = account
        gate = Gate(self.limiter, patience_seconds=0.0)
        self.hook: Hook = LimitsHook(
            gate, self.budgets, lambda _: [account], lambda _model, _into, out: None if price is None else price * out
        )


def call(**params: Any) -> Call:
    body = {"model": "m", "max_tokens": 100, "messages": [{"role": "user", "content": "x" * 320}], **params}
    return Call(body, Purpose.JUDGE, team="t", input_tokens=100)


def attempt(status: int | None = 200, headers: Mapping[str, str] | None = None, **facts: Any) -> Attempt:
    given = {"tokens": None, "cost_usd": None, "seconds": 0.1, **facts}
    return Attempt(1, status, headers or {}, **given)


def test_an_answered_request_costs_what_it_used() -> None:
    room, asked = Room(), call()

    room.hook.before(asked, 1)
    room.hook.after(asked, attempt(tokens=Tokens(80, 20), cost_usd=0.02))

    assert room.budgets.spent(BATCH) == Spend(0.02, 100)


def test_a_refused_request_costs_nothing_and_one_that_was_cut_off_costs_all_it_might() -> None:
    room, asked = Room(), call()
    room.hook.before(asked, 1)
    room.hook.after(asked, attempt(status=500, error="api_error"))
    assert room.budgets.spent(BATCH) == Spend()

    room.hook.before(asked, 1)
    room.hook.after(asked, attempt(status=None, error="timeout"))

    assert room.budgets.spent(BATCH) == Spend(0.1, 200)  # 100 in, 100 out at the most


def test_the_request_that_would_break_the_budget_does_not_leave() -> None:
    room = Room(price=0.02)

    with pytest.raises(OverBudget):
        room.hook.before(call(), 1)


def test_a_money_budget_needs_a_price() -> None:
    room = Room(price=None)

    with pytest.raises(OverBudget, match="price of m is not known"):
        room.hook.before(call(), 1)
    Room(account=Account("b", max_tokens=1_000), price=None).hook.before(call(), 1)


def test_who_is_turned_away_at_the_gate_keeps_no_money_reserved() -> None:
    room = Room(Rate(requests=1))
    first = call()
    room.hook.before(first, 1)

    with pytest.raises(RetryLater):
        room.hook.before(call(), 1)
    room.hook.after(first, attempt(tokens=Tokens(0, 0), cost_usd=0.0))

    room.budgets.reserve(Reservation((BATCH,)), Spend(1.0, 100_000))


def test_a_429_pauses_the_model_for_everybody() -> None:
    room, asked = Room(), call()
    room.hook.before(asked, 1)

    room.hook.after(asked, attempt(status=429, error="rate_limit_error", retry_after_seconds=30.0))

    assert room.limiter.paused_seconds("m") == pytest.approx(30.0, abs=1.0)
    with pytest.raises(RetryLater):
        room.hook.before(call(), 1)


def test_what_is_read_from_the_cache_does_not_count_against_the_rate() -> None:
    room, asked = Room(Rate(input_tokens=6_000)), call()
    room.hook.before(asked, 1)

    room.hook.after(asked, attempt(tokens=Tokens(0, 5, cache_read=50_000), cost_usd=0.0))

    room.hook.before(call(), 1)


def test_limits_are_read_from_either_spelling_of_the_headers() -> None:
    recorded = {"anthropic-ratelimit-requests-limit": "50", "anthropic-ratelimit-requests-remaining": "0"}
    documented = {"x-ratelimit-input-tokens-limit": "4000", "x-ratelimit-output-tokens-remaining": "7"}

    assert seen_in(recorded) == Seen(requests_limit=50, requests_remaining=0)
    assert seen_in(documented) == Seen(input_tokens_limit=4000, output_tokens_remaining=7)


@pytest.mark.parametrize("value", ["", "-1", "many", "1e9", "9" * 40, "٣"])
def test_headers_that_are_no_numbers_say_nothing(value: str) -> None:
    assert seen_in({"anthropic-ratelimit-requests-limit": value}) is None


def test_a_caller_that_gives_no_estimate_is_counted_by_its_text() -> None:
    room = Room(account=Account("b", max_tokens=150))
    small = Call({"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "x" * 320}]}, Purpose.JUDGE)
    large = Call({"model": "m", "max_tokens": 10, "messages": [{"role": "user", "content": "x" * 640}]}, Purpose.JUDGE)

    room.hook.before(small, 1)
    with pytest.raises(OverBudget):
        room.hook.before(large, 1)
