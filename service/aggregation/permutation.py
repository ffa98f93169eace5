"""Permutation tests: how often chance alone would have separated two arms as much as this."""

import math
import random
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, product
from operator import getitem

EXACT_CASES = 12  # 4,096 sign vectors; beyond that we draw
DRAWS = 10_000
MOST_DRAWN_CASES = 50  # beyond either of these, drawing would only cost time
MOST_DRAWN_RUNS = 40  # of one case
_SEED = 20_240_601  # fixed: the same runs must give the same p
_GROUP = 8  # signs drawn together: one random byte picks one of 256 precomputed sums
_SLACK = 1e-12  # sums of floats that are equal on paper


@dataclass(frozen=True, slots=True)
class SignFlip:
    """The sign-flip test of a list of differences."""

    p: float
    exact: bool
    smallest: float  # no data of this size can give a smaller p


def sign_flip(differences: Sequence[float]) -> SignFlip:
    """The two-sided p of the mean when every difference could as well have had the other sign."""
    observed = abs(math.fsum(differences)) - _SLACK
    tables = [_signed_sums(differences[at : at + _GROUP]) for at in range(0, len(differences), _GROUP)]
    if len(differences) <= EXACT_CASES:
        sums = [sum(parts) for parts in product(*tables)]
        extreme = sum(abs(total) >= observed for total in sums)
        return SignFlip(extreme / len(sums), exact=True, smallest=min(1.0, 2.0 / 2 ** len(differences)))
    extreme = sum(abs(total) >= observed for total in _drawn_sums(tables))
    return SignFlip((extreme + 1) / (DRAWS + 1), exact=False, smallest=1 / (DRAWS + 1))


def _signed_sums(values: Sequence[float]) -> list[float]:
    sums = [0.0]
    for value in values:
        sums = [total + signed for total in sums for signed in (value, -value)]
    return sums


def _drawn_sums(tables: Sequence[list[float]]) -> Iterable[float]:
    # The last table may be shorter than 256; its length is a power of two, so repeating it keeps the draw fair.
    full = [table * (2**_GROUP // len(table)) for table in tables]
    draw = random.Random(_SEED)  # noqa: S311 - chance for a test of chance, not for a secret
    return (sum(map(getitem, full, draw.randbytes(len(full)))) for _ in range(DRAWS))


def passes_differ(passed_1: int, runs_1: int, passed_0: int, runs_0: int) -> float | None:
    """The exact two-sided p of a difference of two pass rates, permuting the arms; None without both arms."""
    if not runs_1 or not runs_0:
        return None
    passed, runs = passed_1 + passed_0, runs_1 + runs_0
    observed = abs(passed_1 * runs_0 - passed_0 * runs_1)
    chosen = range(max(0, passed - runs_0), min(passed, runs_1) + 1)
    ways = sum(
        math.comb(passed, k) * math.comb(runs - passed, runs_1 - k)
        for k in chosen
        if abs(k * runs_0 - (passed - k) * runs_1) >= observed
    )
    return ways / math.comb(runs, runs_1)


Counts = Mapping[int, int]  # score -> how many runs had it


def scores_differ(strata: Sequence[tuple[Counts, Counts]]) -> float | None:
    """The two-sided p of the mean over cases of a score difference, permuting arms inside each case."""
    usable = [(one, zero) for one, zero in strata if one and zero]
    if not usable:
        return None
    observed = abs(math.fsum(_difference(one, zero) for one, zero in usable)) - _SLACK
    spread = math.sqrt(math.fsum(_variance(one, zero) for one, zero in usable))
    if spread == 0.0:
        return 1.0
    runs = max(sum(one.values()) + sum(zero.values()) for one, zero in usable)
    if len(usable) > MOST_DRAWN_CASES or runs > MOST_DRAWN_RUNS:
        # A sum of many small parts is normal; half a step makes up for scores being whole numbers.
        step = min(1 / sum(one.values()) + 1 / sum(zero.values()) for one, zero in usable)
        return math.erfc(max(0.0, observed - step / 2) / spread / math.sqrt(2.0))
    drawn = [_Outcomes.of(one, zero) for one, zero in usable]
    draws = max(1_000, min(DRAWS, 100_000 // len(drawn)))
    draw = random.Random(_SEED)  # noqa: S311 - as above
    extreme = sum(abs(sum(case.draw(draw.random()) for case in drawn)) >= observed for _ in range(draws))
    return (extreme + 1) / (draws + 1)


def _difference(one: Counts, zero: Counts) -> float:
    return _mean(one) - _mean(zero)


def _mean(counts: Counts) -> float:
    return sum(score * n for score, n in counts.items()) / sum(counts.values())


def _variance(one: Counts, zero: Counts) -> float:
    """The variance of the difference when the arms are dealt anew: a draw without replacement."""
    both = {score: one.get(score, 0) + zero.get(score, 0) for score in {*one, *zero}}
    size, size_1 = sum(both.values()), sum(one.values())
    if size < 2:
        return 0.0
    mean = _mean(both)
    squares = math.fsum(n * (score - mean) ** 2 for score, n in both.items())
    return squares / (size - 1) * size / (size_1 * (size - size_1))


@dataclass(frozen=True, slots=True)
class _Outcomes:
    """One case: every difference its runs could have shown, with its cumulative chance."""

    differences: tuple[float, ...]
    chances: tuple[float, ...]

    @classmethod
    def of(cls, one: Counts, zero: Counts) -> "_Outcomes":
        size_1, size_0 = sum(one.values()), sum(zero.values())
        both = {score: one.get(score, 0) + zero.get(score, 0) for score in sorted({*one, *zero})}
        ways = _ways_of_sum(both, size_1)
        total, whole = sum(score * n for score, n in both.items()), math.comb(size_1 + size_0, size_1)
        differences = tuple(s / size_1 - (total - s) / size_0 for s in ways)
        return cls(differences, tuple(accumulate(n / whole for n in ways.values())))

    def draw(self, chance: float) -> float:
        return self.differences[min(bisect_right(self.chances, chance), len(self.differences) - 1)]


def _ways_of_sum(counts: Counts, size: int) -> dict[int, int]:
    """In how many ways `size` of the runs can be chosen so that their scores add up to each sum."""
    ways: dict[tuple[int, int], int] = {(0, 0): 1}  # (chosen, sum) -> ways
    for score, available in counts.items():
        grown: dict[tuple[int, int], int] = {}
        for (chosen, total), count in ways.items():
            for more in range(min(available, size - chosen) + 1):
                key = (chosen + more, total + more * score)
                grown[key] = grown.get(key, 0) + count * math.comb(available, more)
        ways = grown
    return {total: count for (chosen, total), count in sorted(ways.items()) if chosen == size}


def benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    """The q of every p: the false-discovery rate at which it would be called."""
    order = sorted(range(len(ps)), key=ps.__getitem__, reverse=True)
    qs, smallest = [1.0] * len(ps), 1.0
    for rank, index in zip(range(len(ps), 0, -1), order, strict=True):
        smallest = min(smallest, ps[index] * len(ps) / rank)
        qs[index] = smallest
    return qs
