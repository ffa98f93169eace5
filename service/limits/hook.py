"""Limiter and budgets around every request to a model: reserve, wait, let it go, correct.

It is plugged into the model client as a hook; `before` and `after` stand around each HTTP attempt. What it needs of a
call and an attempt is written here as protocols, because the model client stands above this room.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from service.limits.budgets import Account, Budgets, OverBudget, Reservation, Spend
from service.limits.gate import Gate
from service.limits.headers import seen_in
from service.limits.port import Demand, Purpose

FIRST_OUTPUT_TOKENS = 1_000  # guess before the first answer of a model
LEARNING = 0.1  # weight of the newest answer in the guess
CHARS_PER_TOKEN = 3.2
PAUSE_SECONDS = 5.0  # for a 429 that does not say how long
UNBILLED = frozenset({"not_sent"})


class CallFacts(Protocol):
    """What is known before a request."""

    @property
    def model(self) -> str: ...
    @property
    def team(self) -> str: ...
    @property
    def purpose(self) -> Purpose: ...
    @property
    def max_tokens(self) -> int: ...
    @property
    def input_tokens(self) -> int | None: ...
    @property
    def params(self) -> Mapping[str, Any]: ...
    @property
    def timeout_seconds(self) -> float: ...
    @property
    def batch_id(self) -> str | None: ...


class TokenFacts(Protocol):
    """Tokens of an answered request, by kind."""

    @property
    def input(self) -> int: ...
    @property
    def output(self) -> int: ...
    @property
    def cache_write(self) -> int: ...
    @property
    def total(self) -> int: ...


class AttemptFacts(Protocol):
    """What is known after a request."""

    @property
    def number(self) -> int: ...
    @property
    def status(self) -> int | None: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    @property
    def tokens(self) -> TokenFacts | None: ...
    @property
    def cost_usd(self) -> float | None: ...
    @property
    def error(self) -> str | None: ...
    @property
    def retry_after_seconds(self) -> float | None: ...


AccountsOf = Callable[[CallFacts], Sequence[Account]]  # the budgets a call is charged to
WorstCost = Callable[[str, int, int], float | None]  # model, input and output tokens -> USD; None if not known


@dataclass(frozen=True)
class Held:
    """What one request holds while it is under way."""

    demand: Demand
    reservation: Reservation
    reserved: Spend


class LimitsHook:
    """Keeps every request within the fleet's rate and the batch's and team's budgets."""

    def __init__(self, gate: Gate, budgets: Budgets, accounts_of: AccountsOf, worst_cost: WorstCost) -> None:
        self._gate = gate
        self._budgets = budgets
        self._accounts_of = accounts_of
        self._worst_cost = worst_cost
        self._held: dict[tuple[int, int], Held] = {}
        self._outputs: dict[tuple[str, Purpose], float] = {}
        self._lock = threading.Lock()

    def before(self, call: CallFacts, number: int) -> None:
        """Reserve, then wait for the turn; raises OverBudget or RetryLater, and then holds nothing."""
        tokens = input_guess(call)
        guessed = min(call.max_tokens, round(self._output_guess(call)))
        demand = Demand(call.model, call.team, call.purpose, tokens, guessed)
        reservation, reserved = self._reserve(call, tokens)
        try:
            self._gate.enter(demand, min(self._gate.patience_seconds, call.timeout_seconds))
        except BaseException:
            self._budgets.correct(reservation, Spend())
            raise
        with self._lock:
            self._held[id(call), number] = Held(demand, reservation, reserved)

    def after(self, call: CallFacts, attempt: AttemptFacts) -> None:
        """Correct what was guessed, learn the provider's limits, and pause the model for everybody after a 429."""
        with self._lock:
            held = self._held.pop((id(call), attempt.number))
        self._budgets.correct(held.reservation, used_by(attempt, held.reserved))
        counted = counted_tokens(attempt, held.demand)
        self._gate.limiter.settle(held.demand, *counted, seen_in(attempt.headers))
        if attempt.status == 429:
            asked = attempt.retry_after_seconds
            self._gate.limiter.pause(call.model, PAUSE_SECONDS if asked is None else asked)
        if attempt.tokens is not None:
            self._learn(call, attempt.tokens.output)

    def _reserve(self, call: CallFacts, tokens: int) -> tuple[Reservation, Spend]:
        """Take the most this request may cost."""
        reservation = Reservation(tuple(self._accounts_of(call)))
        spend = worst_spend(self._worst_cost, reservation.accounts, call.model, tokens, call.max_tokens)
        self._budgets.reserve(reservation, spend)
        return reservation, spend

    def _output_guess(self, call: CallFacts) -> float:
        with self._lock:
            return self._outputs.get((call.model, call.purpose), FIRST_OUTPUT_TOKENS)

    def _learn(self, call: CallFacts, output_tokens: int) -> None:
        key = (call.model, call.purpose)
        with self._lock:
            before = self._outputs.get(key, float(output_tokens))
            self._outputs[key] = before + LEARNING * (output_tokens - before)


def worst_spend(
    worst_cost: WorstCost, accounts: Sequence[Account], model: str, input_tokens: int, max_tokens: int
) -> Spend:
    """The most a request may take; a budget in money needs a price."""
    cost = worst_cost(model, input_tokens, max_tokens)
    unpriced = [account for account in accounts if account.max_cost_usd is not None and cost is None]
    if unpriced:
        words = f"the price of {model} is not known, so max_cost_usd cannot be kept; set max_tokens instead"
        raise OverBudget(unpriced[0].name, f"over budget: {unpriced[0].name}: {words}")
    return Spend(cost or 0.0, input_tokens + max_tokens)


def input_guess(call: CallFacts) -> int:
    """The tokens that go in: as the caller estimates, else by the size of the body."""
    if call.input_tokens is not None:
        return call.input_tokens
    return int(text_length(call.params) / CHARS_PER_TOKEN)


def text_length(value: Any) -> int:
    """The characters of all texts in a body; images and documents are counted by the caller or not at all."""
    if isinstance(value, str):
        return len(value)
    if isinstance(value, Mapping):
        return sum(text_length(item) for key, item in value.items() if key != "data")
    if isinstance(value, list | tuple):
        return sum(text_length(item) for item in value)
    return 0


def is_unbilled(attempt: AttemptFacts) -> bool:
    """Whether the provider certainly charges nothing: it refused, or was never asked."""
    return attempt.error in UNBILLED or (attempt.status is not None and attempt.status >= 400)


def used_by(attempt: AttemptFacts, reserved: Spend) -> Spend:
    """What a request cost; one that was cut off may have been billed in full."""
    if attempt.tokens is not None:
        return Spend(attempt.cost_usd or 0.0, attempt.tokens.total)
    return Spend() if is_unbilled(attempt) else reserved


def counted_tokens(attempt: AttemptFacts, demand: Demand) -> tuple[int, int]:
    """Input and output tokens that count against the provider's limits; what is read from its cache does not."""
    if attempt.tokens is not None:
        return attempt.tokens.input + attempt.tokens.cache_write, attempt.tokens.output
    return (0, 0) if is_unbilled(attempt) else (demand.input_tokens, demand.output_tokens)
