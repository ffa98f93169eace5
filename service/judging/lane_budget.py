"""What the half-price lane spends: reserved when a request is sent, corrected when its answer comes."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta

from service.judging.judgement import JudgeAnswer
from service.judging.lane import LaneRequest
from service.judging.request import JudgeRequest
from service.limits.budgets import Account, Budgets, Reservation, Spend
from service.limits.hook import WorstCost, worst_spend

HELD_SECONDS = 26 * 3_600.0  # the provider gives up after a day
PRICE_SHARE = 0.5


AccountsAt = Callable[[LaneRequest, datetime], Sequence[Account]]  # what a request is charged to at that time


def utc() -> datetime:
    """Now."""
    return datetime.now(UTC)


class LaneSpending:
    """The LaneBudget of an installation."""

    def __init__(
        self, budgets: Budgets, accounts_of: AccountsAt, worst_cost: WorstCost, clock: Callable[[], datetime] = utc
    ) -> None:
        self._budgets = budgets
        self._accounts_of = accounts_of
        self._worst_cost = worst_cost
        self._clock = clock

    def reserve(self, request: LaneRequest, body: JudgeRequest) -> None:
        reservation = self._reservation(request, self._accounts_of(request, self._clock()))
        tokens = body.estimated_input_tokens()
        worst = worst_spend(self._worst_cost, reservation.accounts, request.slot.model, tokens, body.max_tokens)
        self._budgets.reserve(reservation, Spend(worst.cost_usd * PRICE_SHARE, worst.tokens))

    def correct(self, request: LaneRequest, answer: JudgeAnswer | None) -> None:
        used = Spend(answer.cost_usd or 0.0, answer.tokens.total) if answer else Spend()
        now = self._clock()
        # A month may have ended since: the reservation is in one of the two, and the other is left alone.
        moments = (now, now - timedelta(seconds=HELD_SECONDS))
        accounts = {one.name: one for moment in moments for one in self._accounts_of(request, moment)}
        self._budgets.correct(self._reservation(request, accounts.values()), used)

    @staticmethod
    def _reservation(request: LaneRequest, accounts: Iterable[Account]) -> Reservation:
        # The judgement's id: sending it again after a crash reserves nothing more.
        return Reservation(tuple(accounts), f"lane:{request.id}", HELD_SECONDS)
