"""Blind comparison of two versions: who won, and whether the judge can be trusted with the question.

Every pair of outputs is judged twice, each version once as A. A win is what both orders agree on; anything else is a
tie. A case goes to the version that won more than half of its judged runs.
"""

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from schemas.base import CaseId, Number
from schemas.comparison import Comparison, OutputQuality, OutputRubric
from service.aggregation.paired import MeanInterval, mean_interval


class Label(StrEnum):
    """What the judge may answer."""

    A = "A"
    B = "B"
    TIE = "TIE"


def assignment(seed: str, case_id: CaseId, run_number: int, versions: tuple[str, str]) -> dict[str, str]:
    """Which version is A the first time; the same for the same seed, and kept apart from the comparison."""
    # A number and its text are different cases, so the type is part of the draw.
    draw = random.Random(f"{seed}/{type(case_id).__name__}/{case_id}/{run_number}")  # noqa: S311 - a coin, no secret
    first, second = draw.sample(versions, 2)
    return {"A": first, "B": second}


@dataclass(frozen=True, slots=True)
class Ballot:
    """One answer of the judge: who was A, who was B, which label won."""

    case_id: CaseId
    run_number: int
    a: str
    b: str
    winner: Label
    length_a: int = 0  # characters the judge saw
    length_b: int = 0

    @property
    def winning_version(self) -> str | None:
        """The version behind the label; None for a tie."""
        return {Label.A: self.a, Label.B: self.b}.get(self.winner)


@dataclass(frozen=True, slots=True)
class Tally:
    """Wins, losses and ties of the challenger."""

    won: int
    lost: int
    tied: int

    @property
    def rate(self) -> float | None:
        """Wins plus half the ties; None of nothing."""
        total = self.won + self.lost + self.tied
        return (self.won + self.tied / 2) / total if total else None


@dataclass(frozen=True, slots=True)
class Bias:
    """What the judge's answers depend on besides quality; None where nothing can be said."""

    order_consistency: float | None  # pairs whose two orders agree
    first_position_rate: float | None  # decided answers that chose what was shown first
    longer_wins_rate: float | None  # decided answers that chose the longer output
    rate_at_equal_length: float | None  # the challenger's win rate if both outputs were equally long


@dataclass(frozen=True, slots=True)
class Contest:
    """Challenger against champion over a suite."""

    challenger: str
    champion: str
    pairs: Tally
    cases: Tally
    case_winners: Mapping[CaseId, str | None]
    win_rate: MeanInterval | None  # over cases
    bias: Bias
    incomplete: int  # pairs judged in one order only; they decide nothing

    @property
    def result(self) -> str:
        """won, lost or tie, as a history knows it: by the majority of cases."""
        return "won" if self.cases.won > self.cases.lost else "lost" if self.cases.lost > self.cases.won else "tie"


def contest(ballots: Iterable[Ballot], challenger: str, champion: str) -> Contest:
    """Count the ballots of all cases and runs."""
    everything = list(ballots)
    pairs: dict[tuple[CaseId, int], list[Ballot]] = {}
    for ballot in everything:
        pairs.setdefault((ballot.case_id, ballot.run_number), []).append(ballot)
    judged = {place: both for place, both in pairs.items() if len({ballot.a for ballot in both}) == 2}
    winners = {place: _agreed(both) for place, both in judged.items()}
    by_case: dict[CaseId, list[str | None]] = {}
    for (case_id, _), winner in winners.items():
        by_case.setdefault(case_id, []).append(winner)
    cases = {case_id: _majority(found) for case_id, found in by_case.items()}
    rates = [_count(found, challenger).rate or 0.0 for found in by_case.values()]
    return Contest(
        challenger,
        champion,
        _count(winners.values(), challenger),
        _count(cases.values(), challenger),
        cases,
        mean_interval(rates),
        _bias(everything, list(judged.values()), challenger),
        len(pairs) - len(judged),
    )


def _agreed(both: Sequence[Ballot]) -> str | None:
    """The version every order chose; None when they differ."""
    chosen = {ballot.winning_version for ballot in both}
    return chosen.pop() if len(chosen) == 1 else None


def _majority(winners: Sequence[str | None]) -> str | None:
    """The version that won more than half of a case's judged runs, ties among them; None when none did."""
    version, wins = Counter(winners).most_common(1)[0]
    return version if 2 * wins > len(winners) else None


def _count(winners: Iterable[str | None], challenger: str) -> Tally:
    found = Counter("tied" if w is None else "won" if w == challenger else "lost" for w in winners)
    return Tally(found["won"], found["lost"], found["tied"])


def _bias(ballots: Sequence[Ballot], judged: Sequence[Sequence[Ballot]], challenger: str) -> Bias:
    decided = [ballot for ballot in ballots if ballot.winner is not Label.TIE]
    measured = [ballot for ballot in decided if ballot.length_a > 0 and ballot.length_b > 0]
    unequal = [ballot for ballot in measured if ballot.length_a != ballot.length_b]
    return Bias(
        _share([len({ballot.winning_version for ballot in both}) == 1 for both in judged]),
        _share([ballot.winner is Label.A for ballot in decided]),
        _share([(ballot.winner is Label.A) == (ballot.length_a > ballot.length_b) for ballot in unequal]),
        _rate_at_equal_length(measured, challenger),
    )


def _share(flags: Sequence[bool]) -> float | None:
    return sum(flags) / len(flags) if flags else None


def _rate_at_equal_length(ballots: Sequence[Ballot], challenger: str) -> float | None:
    """Where logit P(challenger wins) = b0 + b1 * log(its length / the other's) crosses equal length."""
    if len(ballots) < 4:
        return None
    points = []
    for ballot in ballots:
        log_ratio = math.log(ballot.length_a / ballot.length_b)
        points.append((log_ratio if ballot.a == challenger else -log_ratio, ballot.winning_version == challenger))
    intercept, _ = logistic(points)
    return 1 / (1 + math.exp(-intercept))


def logistic(points: Sequence[tuple[float, bool]], ridge: float = 0.1) -> tuple[float, float]:
    """Intercept and slope by Newton's method; a little ridge keeps separable data finite."""
    b0 = b1 = 0.0
    for _ in range(50):
        g0, g1, h00, h01, h11 = -ridge * b0, -ridge * b1, ridge, 0.0, ridge
        for x, y in points:
            p = 1 / (1 + math.exp(-max(-30.0, min(30.0, b0 + b1 * x))))
            weight = p * (1 - p)
            g0, g1 = g0 + (y - p), g1 + (y - p) * x
            h00, h01, h11 = h00 + weight, h01 + weight * x, h11 + weight * x * x
        determinant = h00 * h11 - h01 * h01
        step0, step1 = (h11 * g0 - h01 * g1) / determinant, (h00 * g1 - h01 * g0) / determinant
        b0, b1 = b0 + step0, b1 + step1
        if abs(step0) + abs(step1) < 1e-10:
            break
    return b0, b1


def group_score(criteria: Mapping[str, Number]) -> float:
    """The mean of a group's criteria, one decimal."""
    return round(sum(criteria.values()) / len(criteria), 1)


def output_rubric(content: Mapping[str, Number], structure: Mapping[str, Number]) -> OutputRubric:
    """Sub-scores and their sum; the sum is of the rounded scores, as readers of the file add them up."""
    content_score, structure_score = group_score(content), group_score(structure)
    return OutputRubric(
        content=dict(content),
        structure=dict(structure),
        content_score=content_score,
        structure_score=structure_score,
        overall_score=round(content_score + structure_score, 1),
    )


def completed(comparison: Comparison) -> Comparison:
    """A comparison whose sums and quality scores follow from the criteria, whatever the judge added up."""
    rubric = {
        label: output_rubric(side.content, side.structure) if side.content and side.structure else side
        for label, side in (comparison.rubric or {}).items()
    }
    quality = dict(comparison.output_quality or {})
    for label, side in rubric.items():
        if side.overall_score is not None:
            known = quality.get(label, OutputQuality())
            quality[label] = known.model_copy(update={"score": round(side.overall_score)})
    return comparison.model_copy(update={"rubric": rubric or None, "output_quality": quality or None})
