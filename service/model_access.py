"""The model client of a process with everything around it: limiter, budgets and ledger."""

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from service.jobs import Remembered
from service.limits.budgets import Account, Budgets, Spend, batch_account, month_account
from service.limits.gate import Gate
from service.limits.hook import CallFacts, LimitsHook
from service.limits.memory import MemoryLimiter
from service.limits.memory_budgets import MemoryBudgets
from service.limits.port import Limiter, Policy, Rate
from service.limits.shared import RedisLimiter
from service.limits.shared_budgets import RedisBudgets
from service.models import ClientSettings, ModelCall, ModelClient, Tokens
from service.models.prices import Prices, known_prices
from service.settings import Settings
from service.storage.store import Store

FRESH_SECONDS = 5.0  # how old a batch's budget may be when it is looked at


@dataclass(frozen=True)
class ModelAccess:
    """The client, and what others need who spend in another way: the half-price lane."""

    client: ModelClient
    budgets: Budgets
    accounts: "Accounts"

    def worst_cost(self, model: str, read: int, said: int) -> float | None:
        """The most a call can cost; None if the price is not known."""
        return worst_cost(self.client.prices, model, read, said)


def worst_cost(prices: Prices, model: str, read: int, said: int) -> float | None:
    """With everything read written to the cache, which costs more than reading it plainly."""
    return prices.cost(model, Tokens(cache_write=read, output=said))


def open_models(settings: Settings, store: Store, concurrency: int) -> ModelAccess:
    """A client whose every request is limited, paid for and written down."""
    limiter, budgets = _shared_parts(settings, store) if settings.limits else _own_parts(settings, store)
    prices = known_prices()
    accounts = Accounts(settings, store)
    gate = Gate(limiter)
    hook = LimitsHook(gate, budgets, accounts, functools.partial(worst_cost, prices))
    key = settings.anthropic_api_key.get_secret_value() if settings.anthropic_api_key else None
    client = ClientSettings(api_key=key, base_url=settings.anthropic_base_url, concurrency=concurrency)
    ledger = StoredLedger(store, gate.take_waited)
    return ModelAccess(ModelClient(client, [hook], ledger, prices), budgets, accounts)


def _policy(settings: Settings) -> Policy:
    return Policy(rates={model: Rate(**limits) for model, limits in settings.rates.items()})


def _shared_parts(settings: Settings, store: Store) -> tuple[Limiter, Budgets]:
    from redis import Redis

    redis: Any = Redis.from_url(settings.limits or "", socket_connect_timeout=3, socket_timeout=5)
    return RedisLimiter(redis, _policy(settings)), RedisBudgets(redis, Spent(store))


def _own_parts(settings: Settings, store: Store) -> tuple[Limiter, Budgets]:
    return MemoryLimiter(_policy(settings)), MemoryBudgets(Spent(store))


class Spent:
    """What an account has spent according to the ledger; asked when the limiter's memory of it is gone."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def __call__(self, account: str) -> Spend:
        kind, _, rest = account.partition(":")
        if kind == "batch":
            return Spend(*self._store.ledger.spent_by_batch(rest))
        team, _, month = rest.rpartition(":")
        first = datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC)
        following = first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
        return Spend(*self._store.ledger.spent_by_team(team, first.timestamp(), following.timestamp()))


class Accounts:
    """The budgets a call is charged to: its batch's or comparison's, and its team's month."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._store = store
        self._limits: Remembered[tuple[float | None, int | None]] = Remembered(200)

    def __call__(self, call: CallFacts) -> Sequence[Account]:
        return self.of(call.team, call.batch_id)

    def of(self, team: str, batch_id: str | None, moment: datetime | None = None) -> Sequence[Account]:
        """The budgets of a team's batch, now or at another time."""
        accounts = [self._month(team, moment or datetime.now(UTC))]
        if batch_id:
            # A retry may raise a batch's budget: it is looked up again every few seconds.
            period = int(time.monotonic() // FRESH_SECONDS)
            limits = self._limits.get((batch_id, period), lambda: self._limits_of(batch_id))
            accounts.append(batch_account(batch_id, *limits))
        return [one for one in accounts if one.max_cost_usd is not None or one.max_tokens is not None]

    def _limits_of(self, account: str) -> tuple[float | None, int | None]:
        """Money and tokens that a batch or a comparison may take."""
        if batch := self._store.batches.one(account):
            return batch.setting("max_cost_usd"), batch.setting("max_tokens")
        if comparison := self._store.comparisons.one(account):
            return comparison.settings.get("max_cost_usd"), comparison.settings.get("max_tokens")
        return None, None

    def _month(self, team: str, moment: datetime) -> Account:
        limits = (self._settings.team_month_max_cost_usd, self._settings.team_month_max_tokens)
        return month_account(team, moment, *limits)


class StoredLedger:
    """Writes every call into the database; safe for many threads."""

    def __init__(self, store: Store, waited: Callable[[str], float]) -> None:
        """`waited` gives the seconds that requests to a model stood at the limiter since it was asked last."""
        self._store = store
        self._waited = waited

    def record(self, call: ModelCall) -> None:
        tokens = call.tokens
        self._store.ledger.add(
            {
                "team_id": call.team,
                "batch_id": call.batch_id,
                "run_id": call.run_id,
                "purpose": call.purpose,
                "model": call.model,
                "answered_by": call.answered_by,
                "input_tokens": tokens.input if tokens else None,
                "output_tokens": tokens.output if tokens else None,
                "cache_read_tokens": tokens.cache_read if tokens else None,
                "cache_write_tokens": tokens.cache_write if tokens else None,
                "cost_usd": call.cost_usd,
                "seconds": call.seconds,
                "waited_seconds": self._waited(call.model),
                "request_id": call.request_id,
                "simulated": int(call.simulated),
                "attempts": call.attempts,
                "lane": call.lane,
                "error": call.error,
            }
        )
