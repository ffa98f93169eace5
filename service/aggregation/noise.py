"""How steady the judge is: what two judgements of the same outputs decide differently."""

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from schemas.grading import Grading
from service.aggregation.figures import rounded
from service.aggregation.records import RunRecord
from service.aggregation.scores import is_passed

CLOSE = 1  # scores this near count as close


@dataclass(slots=True)
class Agreement:
    """How two rounds of one dimension or criterion agree."""

    pairs: int = 0
    equal: int = 0
    near: int = 0
    apart: float = 0.0  # the sum of the absolute differences

    def add(self, one: float, other: float) -> None:
        """Take one pair of scores in."""
        difference = abs(one - other)
        self.pairs += 1
        self.equal += difference == 0
        self.near += difference <= CLOSE
        self.apart += difference

    @property
    def exact(self) -> float:
        """The share of equal scores."""
        return self.equal / self.pairs

    @property
    def close(self) -> float:
        """The share of scores at most one apart."""
        return self.near / self.pairs

    @property
    def mean_difference(self) -> float:
        """Of the absolute differences."""
        return self.apart / self.pairs


class NoiseTally:
    """What judging twice showed, over all runs."""

    def __init__(self) -> None:
        self.runs = 0
        self.failed = 0  # runs of the sample whose second judgement gave no usable answer
        self.decisions = 0  # statements and criteria that were decided twice
        self.flips = 0
        self.scores: dict[str, Agreement] = {}  # by dimension or criterion

    def add(self, record: RunRecord) -> None:
        """Take one run in."""
        self.failed += record.rejudge_failed
        if record.grading is None or not record.rejudged:
            return
        self.runs += 1
        by_code = {check.text for check in record.structural.expectations} if record.structural else set()
        for again in record.rejudged:
            for one, other in decided_twice(record.grading, again, by_code):
                self.decisions += 1
                self.flips += one != other
            for name, first, second in scored_twice(record.grading, again):
                self.scores.setdefault(name, Agreement()).add(first, second)

    @property
    def flip_rate(self) -> float | None:
        """The share of statements and criteria that were decided differently; None when none was decided twice."""
        return self.flips / self.decisions if self.decisions else None


def decided_twice(first: Grading, second: Grading, by_code: set[str]) -> Iterator[tuple[bool, bool]]:
    """Statements and criteria that the judge decided both times; what code decided says nothing about the judge."""
    statements = zip(first.expectations or (), second.expectations or (), strict=False)
    criteria = zip(first.results or (), second.results or (), strict=False)
    found = [(a.passed, b.passed) for a, b in statements if a.text == b.text and a.text not in by_code]
    found += [(is_passed(a), is_passed(b)) for a, b in criteria if a.criterion == b.criterion]
    return ((one, other) for one, other in found if one is not None and other is not None)


def scored_twice(first: Grading, second: Grading) -> Iterator[tuple[str, float, float]]:
    """Dimensions and criteria scored in both."""
    dimensions = zip(first.rubric_scores or (), second.rubric_scores or (), strict=False)
    criteria = zip(first.results or (), second.results or (), strict=False)
    named = [(a.name, a.score, b.score) for a, b in dimensions if a.name == b.name]
    named += [(a.criterion, a.score, b.score) for a, b in criteria if a.criterion == b.criterion]
    return ((name, float(one), float(other)) for name, one, other in named if one is not None and other is not None)


def noise_document(found: NoiseTally) -> dict[str, JsonValue] | None:
    """The `judge_noise` of benchmark.json; None when nothing was to be judged twice."""
    if not found.runs and not found.failed:
        return None
    return {
        "runs": found.runs,
        "failed": found.failed,
        "decisions": found.decisions,
        "flips": found.flips,
        "flip_rate": rounded(found.flip_rate),
        "scores": {name: _agreement(agreement) for name, agreement in found.scores.items()},
    }


def _agreement(found: Agreement) -> JsonValue:
    return {
        "pairs": found.pairs,
        "exact": rounded(found.exact),
        "close": rounded(found.close),
        "mean_difference": rounded(found.mean_difference),
    }
