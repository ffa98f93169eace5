"""Rates of yes/no things: intervals, pass@k and pass^k."""

import math
from collections.abc import Sequence
from statistics import NormalDist

_Z = NormalDist().inv_cdf(0.975)


def wilson(passed: int, runs: int) -> tuple[float, float] | None:
    """The 95 % interval of one rate; None of nothing."""
    if not runs:
        return None
    rate, squared = passed / runs, _Z * _Z
    centre = (rate + squared / (2 * runs)) / (1 + squared / runs)
    half = _Z / (1 + squared / runs) * math.sqrt(rate * (1 - rate) / runs + squared / (4 * runs * runs))
    return max(0.0, centre - half), min(1.0, centre + half)


def pass_at_k(passed: int, runs: int, k: int) -> float:
    """The chance that at least one of k runs passes."""
    return 1.0 - math.comb(runs - passed, k) / math.comb(runs, k)


def pass_hat_k(passed: int, runs: int, k: int) -> float:
    """The chance that all of k runs pass: what a user meets who runs it k times."""
    return math.comb(passed, k) / math.comb(runs, k)


def normalized_gain(treatment: float, control: float) -> float | None:
    """How much of the room above the control was used; None when there was no room."""
    return (treatment - control) / (1.0 - control) if control < 1.0 else None


def largest_common_k(counts: Sequence[tuple[int, int]], most: int = 10) -> int:
    """The largest k every case has runs for; counts are (passed, runs)."""
    return min([most, *(runs for _, runs in counts)]) if counts else 0
