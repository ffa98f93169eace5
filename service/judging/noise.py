"""How steady the judge is: a sample is judged twice, and the two are compared."""

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import fmean

from schemas.grading import Grading
from schemas.structural import Structural

CLOSE = 1  # scores this near count as close


def is_sampled(judgement_id: str, share: float) -> bool:
    """Whether a judgement is in the sample; the same one is in it every time, and a larger share only adds."""
    draw = int.from_bytes(hashlib.sha256(f"rejudge:{judgement_id}".encode()).digest()[:8], "big")
    return draw / 2**64 < share


@dataclass(frozen=True)
class ScoreAgreement:
    """How two rounds of one dimension or criterion agree."""

    pairs: int
    exact: float  # share of equal scores
    close: float  # share at most one apart
    mean_difference: float  # of the absolute differences


@dataclass(frozen=True)
class Noise:
    """What judging twice showed; None where nothing was judged twice."""

    runs: int
    statements: int
    flips: int
    scores: dict[str, ScoreAgreement] = field(default_factory=dict)  # by dimension or criterion

    @property
    def flip_rate(self) -> float | None:
        """The share of statements that were decided differently."""
        return self.flips / self.statements if self.statements else None


@dataclass(frozen=True)
class JudgedTwice:
    """Two gradings of the same outputs; what code decided is in both lists and says nothing about the judge."""

    first: Grading
    second: Grading
    structural: Structural | None = None


def measure_noise(pairs: Iterable[JudgedTwice]) -> Noise:
    """Compare first and second gradings."""
    runs = statements = flips = 0
    scores: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for pair in pairs:
        runs += 1
        decided = statement_pairs(pair)
        statements += len(decided)
        flips += sum(one != other for one, other in decided)
        for name, one_score, other_score in scored_pairs(pair.first, pair.second):
            scores[name].append((one_score, other_score))
    return Noise(runs, statements, flips, {name: agreement(found) for name, found in scores.items()})


def statement_pairs(pair: JudgedTwice) -> list[tuple[bool, bool]]:
    """Statements the judge decided both times."""
    by_code = {check.text for check in pair.structural.expectations} if pair.structural else set()
    both = zip(pair.first.expectations or (), pair.second.expectations or (), strict=False)
    judged = [(one.passed, other.passed) for one, other in both if one.text == other.text and one.text not in by_code]
    return [(one, other) for one, other in judged if one is not None and other is not None]


def scored_pairs(first: Grading, second: Grading) -> list[tuple[str, float, float]]:
    """Dimensions and criteria scored in both."""
    dimensions = zip(first.rubric_scores or (), second.rubric_scores or (), strict=False)
    criteria = zip(first.results or (), second.results or (), strict=False)
    named = [(a.name, a.score, b.score) for a, b in dimensions if a.name == b.name]
    named += [(a.criterion, a.score, b.score) for a, b in criteria if a.criterion == b.criterion]
    return [(name, float(a), float(b)) for name, a, b in named if a is not None and b is not None]


def agreement(pairs: list[tuple[float, float]]) -> ScoreAgreement:
    """How far apart two rounds of scores are."""
    apart = [abs(a - b) for a, b in pairs]
    exact = fmean(difference == 0 for difference in apart)
    return ScoreAgreement(len(pairs), exact, fmean(difference <= CLOSE for difference in apart), fmean(apart))
