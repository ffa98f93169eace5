"""All answers together: one comparison per case, who was who, and the summary."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from schemas.base import CaseId
from schemas.comparison import Comparison
from schemas.suite import Case
from service.aggregation.comparison import Ballot, Contest, Label, Tally, assignment, contest
from service.aggregation.figures import rounded
from service.aggregation.rates import wilson
from service.comparing.sides import CHALLENGER, CHAMPION, SIDES, Excluded, Pair

Json = dict[str, JsonValue]
MOST_LISTED = 200
DIFFERED = "The comparator chose differently when the order was swapped, so this counts as a tie. "
OUTVOTED = "Neither side won more than half of the runs of this case, so this counts as a tie. "


@dataclass(frozen=True)
class Order:
    """One of the two ways to show a pair: label -> side."""

    pair: Pair
    labels: Mapping[str, str]


def orders(seed: str, pair: Pair) -> tuple[Order, Order]:
    """The order drawn by lot, and the other one."""
    drawn = assignment(seed, pair.case.id, pair.run_number, SIDES)
    return Order(pair, drawn), Order(pair, {"A": drawn["B"], "B": drawn["A"]})


@dataclass(frozen=True)
class Vote:
    """What the comparator said to one order; no comparison when nothing usable came."""

    order: Order
    comparison: Comparison | None
    lengths: Mapping[str, int]  # side -> characters
    failure: str | None = None

    @property
    def ballot(self) -> Ballot | None:
        """The vote as it is counted."""
        if self.comparison is None or self.comparison.winner is None:
            return None
        a, b = self.order.labels["A"], self.order.labels["B"]
        place = (self.order.pair.case.id, self.order.pair.run_number)
        return Ballot(*place, a, b, Label(self.comparison.winner), self.lengths[a], self.lengths[b])


@dataclass(frozen=True)
class CaseResult:
    """Who won a case, and the comparison that shows it."""

    position: int
    case: Case
    winner: str | None  # a side; None for a tie
    shown: Vote
    comparison: Comparison

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"comparison-{self.position + 1}.json"

    @property
    def winning_label(self) -> str:
        """The winner as the file calls it."""
        return next((label for label, side in self.shown.order.labels.items() if side == self.winner), "TIE")


@dataclass(frozen=True)
class Decided:
    """A whole contest."""

    contest: Contest
    cases: list[CaseResult]
    failed: list[Vote]
    excluded: Sequence[Excluded]
    planned: int  # pairs
    simulated: bool = False
    about: Json = field(default_factory=dict)  # who compared whom, with what

    @property
    def winner(self) -> str | None:
        """The side that won more cases; None for a tie."""
        return {"won": CHALLENGER, "lost": CHAMPION}.get(self.contest.result) if self.cases else None

    @property
    def result(self) -> str | None:
        """won, lost or tie, from the challenger's side; None when nothing could be compared."""
        return self.contest.result if self.cases else None

    def assignment(self) -> dict[str, dict[str, str]]:
        """Which side is A and which is B in each file."""
        return {one.file: dict(one.shown.order.labels) for one in self.cases}


def decide(votes: Sequence[Vote], planned: int, excluded: Sequence[Excluded], simulated: bool, about: Json) -> Decided:
    """Count all votes."""
    found = contest((ballot for vote in votes if (ballot := vote.ballot)), CHALLENGER, CHAMPION)
    failed = [vote for vote in votes if vote.comparison is None]
    return Decided(found, list(_case_results(votes, found)), failed, excluded, planned, simulated, about)


def _case_results(votes: Sequence[Vote], found: Contest) -> Iterable[CaseResult]:
    by_pair: dict[tuple[int, int], list[Vote]] = {}
    for vote in votes:
        if vote.ballot:
            by_pair.setdefault((vote.order.pair.position, vote.order.pair.run_number), []).append(vote)
    by_case: dict[int, list[list[Vote]]] = {}
    for (position, _), both in sorted(by_pair.items()):
        if len(both) == 2:
            by_case.setdefault(position, []).append(both)
    for position, pairs in by_case.items():
        case = pairs[0][0].order.pair.case
        yield _case_result(position, case, found.case_winners[case.id], pairs)


def _case_result(position: int, case: Case, winner: str | None, pairs: list[list[Vote]]) -> CaseResult:
    """The first run that shows what the case came to, in the order drawn by lot."""
    agreed = [both for both in pairs if _chosen(both) == {winner}]
    shown = (agreed or pairs)[0][0]
    assert shown.comparison is not None
    label = next((label for label, side in shown.order.labels.items() if side == winner), "TIE")
    words = shown.comparison.reasoning or ""
    if not agreed:
        words = (DIFFERED if len(_chosen(pairs[0])) > 1 else OUTVOTED) + words
    made = shown.comparison.model_copy(update={"winner": label, "reasoning": words})
    return CaseResult(position, case, winner, shown, made)


def _chosen(both: Sequence[Vote]) -> set[str | None]:
    return {vote.ballot.winning_version for vote in both if vote.ballot}


def summary_document(decided: Decided, analysis: Json) -> Json:
    """summary.json: the contest in numbers, and what it rests on."""
    found = decided.contest
    return {
        **decided.about,
        "result": decided.result,
        "sentence": sentence(decided),
        "pairs": {
            "planned": decided.planned + len(_excluded_pairs(decided)),
            "compared": found.pairs.won + found.pairs.lost + found.pairs.tied,
            "incomplete": _incomplete(decided),
            "excluded": len(_excluded_pairs(decided)),
            **_tally(found.pairs),
        },
        "cases": {"compared": len(decided.cases), **_tally(found.cases)},
        "win_rate": _win_rate(decided),
        "bias": {
            "order_consistency": rounded(found.bias.order_consistency),
            "first_position_rate": rounded(found.bias.first_position_rate),
            "longer_wins_rate": rounded(found.bias.longer_wins_rate),
            "rate_at_equal_length": rounded(found.bias.rate_at_equal_length),
        },
        "case_results": [_case_line(one) for one in decided.cases],
        "incomplete_pairs": [_failed_line(vote) for vote in decided.failed[:MOST_LISTED]],
        "excluded_runs": [_excluded_line(one) for one in decided.excluded[:MOST_LISTED]],
        "analysis": analysis,
        "simulated": decided.simulated,
    }


def _incomplete(decided: Decided) -> int:
    """Pairs without two usable answers."""
    return len({(vote.order.pair.position, vote.order.pair.run_number) for vote in decided.failed})


def _excluded_pairs(decided: Decided) -> set[tuple[str, CaseId, int]]:
    return {(type(one.case.id).__name__, one.case.id, one.run_number) for one in decided.excluded}


def _win_rate(decided: Decided) -> JsonValue:
    """The mean over cases with its interval; where all cases are alike a t interval would have no width."""
    found = decided.contest.win_rate
    if found is None:
        return None
    low, high, method = found.low, found.high, "t over cases"
    if not found.se:
        is_plain = found.mean in (0.0, 1.0)
        low, high = (wilson(decided.contest.cases.won, found.cases) if is_plain else None) or (None, None)
        method = "Wilson, all cases alike" if is_plain else "none, all cases alike"
    ends: Json = {"ci_low": rounded(_within(low)), "ci_high": rounded(_within(high)), "interval": method}
    return {"cases": found.cases, "mean": rounded(found.mean), **ends}


def _within(rate: float | None) -> float | None:
    """An interval's end as a rate: a t interval may reach beyond what a rate can be."""
    return None if rate is None else min(1.0, max(0.0, rate))


def sentence(decided: Decided) -> str:
    """The result in words, with how much it rests on."""
    if not decided.cases:
        return "No pair of runs could be compared, so nothing can be said."
    names = {side: str(decided.about.get(side, {}).get("label", side)) for side in SIDES}  # type: ignore[union-attr]
    tally = decided.contest.cases
    counts = f"{tally.won} won, {tally.lost} lost, {tally.tied} tied of {len(decided.cases)} cases"
    verb = {"won": "wins against", "lost": "loses against", "tie": "ties with"}[decided.contest.result]
    return f"{names[CHALLENGER]} {verb} {names[CHAMPION]}: {counts}."


def _tally(tally: Tally) -> dict[str, Any]:
    return {"won": tally.won, "lost": tally.lost, "tied": tally.tied, "rate": rounded(tally.rate)}


def _case_line(one: CaseResult) -> Json:
    return {"eval_id": one.case.id, "eval_name": one.case.name, "winner": one.winner, "file": one.file}


def _failed_line(vote: Vote) -> Json:
    pair = vote.order.pair
    return {"eval_id": pair.case.id, "run_number": pair.run_number, "reason": vote.failure}


def _excluded_line(one: Excluded) -> Json:
    return {"eval_id": one.case.id, "run_number": one.run_number, "side": one.side, "reason": one.reason}
