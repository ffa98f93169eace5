"""The budgets of a fleet: two atomic scripts in Redis; the ledger refills an account that Redis lost."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from service.errors import Unavailable
from service.limits.budgets import (
    MICRO,
    Account,
    Ledger,
    Reservation,
    Spend,
    empty_ledger,
    over_budget,
    reserved_away,
)
from service.limits.shared import script_text

if TYPE_CHECKING:
    from redis import Redis

LIFETIME_SECONDS = 62 * 86_400  # longer than a month's account is used
RESERVED, ABSENT, OVER, WAIT = 0, 1, 2, 3


class RedisBudgets:
    """Accounts shared by every process that uses the same Redis and prefix."""

    def __init__(
        self,
        redis: "Redis",
        ledger: Ledger = empty_ledger,
        prefix: str = "assay",
        clock: Callable[[], float] | None = None,
    ) -> None:
        """`clock` is for tests; without it the server's own clock counts."""
        self._redis = redis
        self._ledger = ledger
        self._prefix = prefix
        self._clock = clock
        self._reserve = redis.register_script(script_text("reserve.lua"))
        self._correct = redis.register_script(script_text("correct.lua"))

    def reserve(self, reservation: Reservation, spend: Spend) -> None:
        state = ABSENT if reservation.accounts else RESERVED
        while state != RESERVED:
            state, account = self._try(reservation, spend)
            if state == OVER:
                raise over_budget(account, self.spent(account), spend)
            if state == WAIT:
                raise reserved_away(account)
            if state == ABSENT:
                self._open(account)

    def correct(self, reservation: Reservation, used: Spend) -> None:
        if reservation.accounts:
            self._run(self._correct, reservation.accounts, [reservation.id, used.micros, used.tokens])

    def spent(self, account: Account) -> Spend:
        found = self._asked(lambda: self._redis.hmget(self._keys(account)[0], ["m", "t"]))
        if found[0] is None:
            return self._ledger(account.name)
        return Spend(int(found[0]) / MICRO, int(found[1] or 0))

    def _try(self, reservation: Reservation, spend: Spend) -> tuple[int, Account]:
        """Reserve from all or from none; says how it went and which account it was about."""
        now = "" if self._clock is None else f"{self._clock():.6f}"
        limits = [value for account in reservation.accounts for value in limits_of(account)]
        facts = [reservation.id, spend.micros, spend.tokens, reservation.held_seconds, LIFETIME_SECONDS]
        state, place = self._run(self._reserve, reservation.accounts, [now, *facts, *limits])
        return state, reservation.accounts[max(0, place - 1)]

    def _open(self, account: Account) -> None:
        """Start an account with what the ledger says; who comes second changes nothing."""
        before = self._ledger(account.name)
        book, reserved = self._keys(account)

        def write() -> None:
            with self._redis.pipeline(transaction=True) as pipeline:
                pipeline.hsetnx(book, "m", str(before.micros))
                pipeline.hsetnx(book, "t", str(before.tokens))
                pipeline.expire(book, LIFETIME_SECONDS)
                pipeline.expire(reserved, LIFETIME_SECONDS)
                pipeline.execute()

        self._asked(write)

    def _run(self, script: Any, accounts: Sequence[Account], arguments: list[Any]) -> Any:
        keys = [key for account in accounts for key in self._keys(account)]
        return self._asked(lambda: script(keys=keys, args=arguments))

    def _asked(self, question: Callable[[], Any]) -> Any:
        """Ask Redis; its errors in our words."""
        from redis.exceptions import RedisError

        try:
            return question()
        except RedisError as error:
            raise Unavailable(f"the budgets' redis does not answer: {error}; check its address") from error

    def _keys(self, account: Account) -> tuple[str, str]:
        # One node of a Redis cluster for all accounts: a call takes from several at once.
        key = f"{self._prefix}:{{budgets}}:{account.name}"
        return key, f"{key}:reserved"


def limits_of(account: Account) -> tuple[int, int]:
    """The limits in whole numbers; -1 is none."""
    micros = -1 if account.max_cost_usd is None else Spend(account.max_cost_usd).micros
    return micros, -1 if account.max_tokens is None else account.max_tokens
