"""What the half-price lane spends: reserved when a request is sent, corrected when its answer comes."""

from collections.abc import Callable, Sequence

from service.judging.judgement import JudgeAnswer
from service.judging.lane import LaneRequest
from service.judging.request import JudgeRequest
from service.limits.budgets import Account, Budgets, Reservation, Spend
from service.limits.hook import WorstCost, worst_spend

HELD_SECONDS = 26 * 3_600.0  # the provider gives up after a day
PRICE_SHARE = 0.5


class LaneSpending:
    """The LaneBudget of an installation."""

    def __init__(
        self, budgets: Budgets, accounts_of: Callable[[LaneRequest], Sequence[Account]], worst_cost: WorstCost
    ) -> None:
        self._budgets = budgets
        self._accounts_of = accounts_of
        self._worst_cost = worst_cost

    def reserve(self, request: LaneRequest, body: JudgeRequest) -> None:
        reservation = self._reservation(request)
        tokens = body.estimated_input_tokens()
        worst = worst_spend(self._worst_cost, reservation.accounts, request.slot.model, tokens, body.max_tokens)
        self._budgets.reserve(reservation, Spend(worst.cost_usd * PRICE_SHARE, worst.tokens))

    def correct(self, request: LaneRequest, answer: JudgeAnswer | None) -> None:
        used = Spend(answer.cost_usd or 0.0, answer.tokens.total) if answer else Spend()
        self._budgets.correct(self._reservation(request), used)

    def _reservation(self, request: LaneRequest) -> Reservation:
        # The judgement's id: sending it again after a crash reserves nothing more.
        return Reservation(tuple(self._accounts_of(request)), f"lane:{request.id}", HELD_SECONDS)
