"""Treatment against control, case by case: the numbers behind a verdict.

The unit is the case. Runs of one case are repeats, never independent evidence, so every test here works on one
difference per case.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist

from service.aggregation.distributions import t_quantile, t_two_sided, t_upper
from service.aggregation.permutation import SignFlip, sign_flip

MOST_CASES_NEEDED = 100_000
# Below six cases even a clean sweep has an exact p above 0.05.
FEWEST_CASES_FOR_SWEEP = 6
_NOISE = 1e-12  # a spread this small is what floats leave of equal numbers


class Verdict(StrEnum):
    """What may be said about the skill."""

    HELPS = "helps"  # the interval of the difference lies above 0
    HURTS = "hurts"  # it lies below 0
    NO_DIFFERENCE = "no meaningful difference"  # it lies inside the margin
    INCONCLUSIVE = "inconclusive"  # none of these: more cases are needed


@dataclass(frozen=True, slots=True)
class MeanInterval:
    """A mean over cases and its 95 % interval, which one case does not have."""

    cases: int
    mean: float
    se: float | None
    low: float | None
    high: float | None


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> MeanInterval | None:
    """The mean over cases with its t interval; None of nothing."""
    if not values:
        return None
    n, mean = len(values), math.fsum(values) / len(values)
    if n == 1:
        return MeanInterval(1, mean, None, None, None)
    se = _stddev(values, mean) / math.sqrt(n)
    se = se if se > _NOISE else 0.0
    half = t_quantile((1 + confidence) / 2, n - 1) * se
    return MeanInterval(n, mean, se, mean - half, mean + half)


def _stddev(values: Sequence[float], mean: float) -> float:
    return math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1))


@dataclass(frozen=True, slots=True)
class Difference:
    """Treatment minus control over the paired cases; None where one case is not enough to say."""

    cases: int
    mean: float
    stddev: float | None
    se: float | None
    low: float | None
    high: float | None
    low90: float | None
    high90: float | None
    p: float | None
    tost_p: float | None
    sign_flip: SignFlip
    verdict: Verdict
    reason: str


def difference(per_case: Sequence[float], margin: float) -> Difference | None:
    """The paired difference, its tests and its verdict; None without a paired case."""
    interval, narrow = mean_interval(per_case), mean_interval(per_case, 0.90)
    if interval is None or narrow is None:
        return None
    flip = sign_flip(per_case)
    p, tost = _p_values(interval, margin)
    verdict, reason = _verdict(interval, narrow, flip, margin)
    stddev = None if interval.se is None else interval.se * math.sqrt(interval.cases)
    bounds = (interval.low, interval.high, narrow.low, narrow.high)
    return Difference(interval.cases, interval.mean, stddev, interval.se, *bounds, p, tost, flip, verdict, reason)


def _p_values(interval: MeanInterval, margin: float) -> tuple[float | None, float | None]:
    """The two-sided p of no difference and the TOST p of a difference as large as the margin."""
    if not interval.se:  # one case, or all cases alike: t says nothing
        return None, None
    df = interval.cases - 1
    p = t_two_sided(interval.mean / interval.se, df)
    above = t_upper((interval.mean + margin) / interval.se, df)
    below = t_upper((margin - interval.mean) / interval.se, df)
    return p, max(above, below)


def _verdict(wide: MeanInterval, narrow: MeanInterval, flip: SignFlip, margin: float) -> tuple[Verdict, str]:
    if wide.low is None or wide.high is None:
        return Verdict.INCONCLUSIVE, "one case cannot show how much cases differ"
    if not wide.se:
        return _verdict_of_equal_cases(wide, flip, margin)
    if wide.low > 0:
        return Verdict.HELPS, "the 95 % interval of the difference lies above 0"
    if wide.high < 0:
        return Verdict.HURTS, "the 95 % interval of the difference lies below 0"
    if narrow.low is not None and narrow.high is not None and -margin < narrow.low and narrow.high < margin:
        return Verdict.NO_DIFFERENCE, f"the 90 % interval of the difference lies within ±{margin:g}"
    return Verdict.INCONCLUSIVE, "the 95 % interval of the difference contains 0 and is wider than the margin"


def _verdict_of_equal_cases(interval: MeanInterval, flip: SignFlip, margin: float) -> tuple[Verdict, str]:
    """When every case shows the same difference, t has no width; the exact test alone may speak."""
    if interval.cases < FEWEST_CASES_FOR_SWEEP:
        few = f"{interval.cases} cases with the same difference; below {FEWEST_CASES_FOR_SWEEP} that may be chance"
        return Verdict.INCONCLUSIVE, few
    if abs(interval.mean) < margin:
        return Verdict.NO_DIFFERENCE, f"all {interval.cases} cases show the same difference, within ±{margin:g}"
    label = Verdict.HELPS if interval.mean > 0 else Verdict.HURTS
    return label, f"all {interval.cases} cases show the same difference (exact p {flip.p:.2g})"


def is_not_worse(delta: Difference, margin: float) -> bool | None:
    """Non-inferiority: whether the one-sided 95 % lower bound stays above -margin; None when it cannot be said."""
    if not delta.se or delta.low90 is None:
        return None if delta.cases < FEWEST_CASES_FOR_SWEEP else delta.mean > -margin
    return delta.low90 > -margin


@dataclass(frozen=True, slots=True)
class ArmSpread:
    """How runs of one case scatter in one arm: mean variance over cases, and the runs behind a case mean."""

    variance: float | None
    runs: float


def planning_variance(per_case: Sequence[float], one: ArmSpread, zero: ArmSpread) -> float | None:
    """The variance of one case's difference: between cases plus what repeats leave over."""
    if len(per_case) < 2:
        return None
    total = _stddev(per_case, math.fsum(per_case) / len(per_case)) ** 2
    if one.variance is None or zero.variance is None:
        return total
    repeats = one.variance / one.runs + zero.variance / zero.runs
    return max(0.0, total - repeats) + repeats


def smallest_detectable(variance: float, cases: int) -> float | None:
    """The true difference that this many cases would find four times out of five."""
    if cases < 2:
        return None
    return (t_quantile(0.975, cases - 1) + t_quantile(0.80, cases - 1)) * math.sqrt(variance / cases)


def cases_needed(variance: float, effect: float) -> int | None:
    """How many cases find this effect four times out of five; None when it is beyond any suite."""
    if effect == 0.0:
        return None
    normal = NormalDist()
    needed = math.ceil((normal.inv_cdf(0.975) + normal.inv_cdf(0.80)) ** 2 * variance / effect**2)
    needed = max(needed, FEWEST_CASES_FOR_SWEEP if variance == 0.0 else 2)
    if needed > MOST_CASES_NEEDED:
        return None
    # t asks for a few more than the normal; the smallest number that is enough lies just above.
    while (smallest_detectable(variance, needed) or 0.0) > abs(effect):
        needed += 1
    return needed


@dataclass(frozen=True, slots=True)
class Ratio:
    """Treatment over control as a factor: 1.2 means a fifth more."""

    cases: int
    ratio: float
    low: float | None
    high: float | None
    p: float | None


def ratio(pairs: Sequence[tuple[float, float]]) -> Ratio | None:
    """The geometric mean of treatment/control over cases, from (treatment, control) means; zeros cannot be compared."""
    logs = [math.log(one / zero) for one, zero in pairs if one > 0 and zero > 0]
    interval = mean_interval(logs)
    if interval is None:
        return None
    p = t_two_sided(interval.mean / interval.se, interval.cases - 1) if interval.se else None
    low = None if interval.low is None else math.exp(interval.low)
    high = None if interval.high is None else math.exp(interval.high)
    return Ratio(interval.cases, math.exp(interval.mean), low, high, p)


def case_interval(mean_1: float, var_1: float, n_1: int, mean_0: float, var_0: float, n_0: int) -> tuple[float, float]:
    """Welch's 95 % interval of one case's difference from its repeats; needs some spread and two runs an arm."""
    part_1, part_0 = var_1 / n_1, var_0 / n_0
    df = (part_1 + part_0) ** 2 / (part_1**2 / (n_1 - 1) + part_0**2 / (n_0 - 1))
    half = t_quantile(0.975, df) * math.sqrt(part_1 + part_0)
    return mean_1 - mean_0 - half, mean_1 - mean_0 + half
