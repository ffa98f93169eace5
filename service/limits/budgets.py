"""Budgets: money and tokens, reserved before a call and corrected after it.

The ledger in the database is the truth about what was spent; an account counts on from there. An account that is not
there yet (new, or Redis came back empty) starts with what the ledger says. A call reserves the most it may cost:

    spent + this call is more than the budget                  OverBudget: the run settles as over_budget
    only together with what others have reserved it is more    ReservedAway: most of them will cost less; a run
                                                               that waits for it too long settles as over_budget

A worker that dies between reserve and correct leaves a reservation behind. After a while it counts as spent: the
call may have been billed. So a budget may end a little early; late only by the calls that were under way when Redis
was lost, until the account is opened again.
"""

import math
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from schemas.states import Outcome
from service.errors import StageFailed
from service.limits.port import RetryLater

MICRO = 1_000_000  # money is counted in whole micro-dollars: floats do not add up
RESERVED_SECONDS = 900.0  # longer than any call lasts
AGAIN_SECONDS = 2.0  # when reservations of others are in the way


@dataclass(frozen=True)
class Spend:
    """Money and tokens."""

    cost_usd: float = 0.0
    tokens: int = 0

    @property
    def micros(self) -> int:
        """The money in micro-dollars, rounded up."""
        # The inner rounding takes off what floats add: 0.07 dollars are 70,000, not 70,001.
        return math.ceil(round(self.cost_usd * MICRO, 3))


@dataclass(frozen=True)
class Account:
    """Something that has a budget; None is no limit."""

    name: str  # "batch:<id>" or "team:<id>:2026-11"
    max_cost_usd: float | None = None
    max_tokens: int | None = None

    def is_exceeded_by(self, micros: int, tokens: int) -> bool:
        """Whether so much is more than the budget."""
        money = self.max_cost_usd is not None and micros > Spend(self.max_cost_usd).micros
        return money or (self.max_tokens is not None and tokens > self.max_tokens)


def batch_account(batch_id: str, max_cost_usd: float | None, max_tokens: int | None) -> Account:
    """The budget of one batch."""
    return Account(f"batch:{batch_id}", max_cost_usd, max_tokens)


def month_account(team: str, now: datetime, max_cost_usd: float | None, max_tokens: int | None) -> Account:
    """The budget of one team in one month."""
    return Account(f"team:{team}:{now:%Y-%m}", max_cost_usd, max_tokens)


class OverBudget(StageFailed):
    """A call would cost more than an account has left."""

    def __init__(self, account: str, message: str) -> None:
        self.account = account
        super().__init__(Outcome.OVER_BUDGET, message)


class ReservedAway(RetryLater):
    """What an account has left is reserved by calls under way; most of them will cost less."""


@dataclass(frozen=True)
class Reservation:
    """What one call has taken from its accounts until it is corrected."""

    accounts: tuple[Account, ...]
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    held_seconds: float = RESERVED_SECONDS  # after this it counts as spent


Ledger = Callable[[str], Spend]  # what an account has spent so far, by its name


def empty_ledger(_account: str) -> Spend:
    """For accounts nobody has written down yet."""
    return Spend()


class Budgets(Protocol):
    """Keeps accounts; safe to use from many threads, and, if it says so, from many machines."""

    def reserve(self, reservation: Reservation, spend: Spend) -> None:
        """Take from all accounts, or from none and raise OverBudget or RetryLater; repeating it changes nothing."""

    def correct(self, reservation: Reservation, used: Spend) -> None:
        """Replace a reservation by what the call really cost; repeating it changes nothing."""

    def spent(self, account: Account) -> Spend:
        """What is spent, without what is reserved."""


def over_budget(account: Account, spent: Spend, spend: Spend) -> OverBudget:
    """The error for an account that has too little left."""
    limits = {
        "USD": (account.max_cost_usd, spent.cost_usd, spend.cost_usd),
        "tokens": (account.max_tokens, spent.tokens, spend.tokens),
    }
    told = [
        f"{used:g} of {limit:g} {unit} are spent and this call may take {more:g}"
        for unit, (limit, used, more) in limits.items()
        if limit is not None and used + more > limit
    ]
    reason = " and ".join(told) or "it has too little left"
    return OverBudget(account.name, f"over budget: {account.name}: {reason}; raise the budget and retry")


def reserved_away(account: Account) -> ReservedAway:
    """The error for an account whose rest is reserved by calls that will probably cost less."""
    return ReservedAway(AGAIN_SECONDS, f"the rest of budget {account.name} is reserved by calls under way; again soon")
