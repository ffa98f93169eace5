import math
import random

import numpy as np
import pytest
from scipy import stats

from service.aggregation.paired import (
    ArmSpread,
    Verdict,
    cases_needed,
    difference,
    is_not_worse,
    mean_interval,
    planning_variance,
    ratio,
    smallest_detectable,
)


def random_differences(seed: int) -> list[float]:
    """Per-case differences of a random benchmark: 2 to 11 cases, 1 to 5 runs, 3 to 8 expectations."""
    draw = random.Random(seed)
    runs, expectations, effect = draw.randint(1, 5), draw.randint(3, 8), draw.uniform(-0.3, 0.5)

    def case_mean(chance: float) -> float:
        scores = [sum(draw.random() < chance for _ in range(expectations)) / expectations for _ in range(runs)]
        return sum(scores) / runs

    def case_difference() -> float:
        ease = draw.uniform(0.2, 0.8)
        return case_mean(min(1.0, max(0.0, ease + effect))) - case_mean(ease)

    return [case_difference() for _ in range(draw.randint(2, 11))]


def scipy_sign_flip(differences: list[float]) -> float:
    """scipy's exact p; sums that are equal on paper are made equal by rounding."""
    found = stats.permutation_test(
        (np.array(differences),),
        lambda x, axis: np.round(np.abs(np.mean(x, axis=axis)), 12),
        permutation_type="samples",
        n_resamples=np.inf,
        alternative="greater",
    )
    return float(found.pvalue)


@pytest.mark.parametrize("seed", range(200))
def test_a_random_benchmark_agrees_with_scipy(seed: int) -> None:
    differences = random_differences(seed)
    found = difference(differences, 0.05)
    assert found is not None

    if np.ptp(differences) < 1e-12:
        assert found.p is None
    else:
        expected = stats.ttest_1samp(differences, 0.0)
        interval, narrow = expected.confidence_interval(0.95), expected.confidence_interval(0.90)
        assert found.p == pytest.approx(expected.pvalue, rel=1e-8)
        assert (found.low, found.high) == pytest.approx((interval.low, interval.high), rel=1e-8, abs=1e-12)
        assert (found.low90, found.high90) == pytest.approx((narrow.low, narrow.high), rel=1e-8, abs=1e-12)
        above = stats.ttest_1samp(differences, -0.05, alternative="greater").pvalue
        below = stats.ttest_1samp(differences, 0.05, alternative="less").pvalue
        assert found.tost_p == pytest.approx(max(above, below), rel=1e-8)

    assert found.sign_flip.exact
    assert found.sign_flip.p == pytest.approx(scipy_sign_flip(differences), rel=1e-9)


@pytest.mark.parametrize(("cases", "benchmarks"), [(5, 1500), (10, 1500), (20, 500)])
def test_a_skill_without_effect_is_called_something_in_3_to_7_percent_of_benchmarks(
    cases: int, benchmarks: int
) -> None:
    draw = np.random.default_rng(cases)
    ease = draw.normal(0.3, 1.2, (benchmarks, cases, 1, 1))
    own = draw.normal(0.0, 0.6, (benchmarks, cases, 2, 1))  # what one arm happens to be good at, with mean 0
    chance = 1 / (1 + np.exp(-(ease + own)))
    scores = draw.binomial(6, np.broadcast_to(chance, (benchmarks, cases, 2, 3))) / 6
    means = scores.mean(axis=3)

    verdicts = [difference(list(row), 0.05) for row in means[:, :, 0] - means[:, :, 1]]

    called = sum(found is not None and found.verdict in (Verdict.HELPS, Verdict.HURTS) for found in verdicts)
    assert 0.03 <= called / benchmarks <= 0.07


def test_many_cases_are_sign_flipped_by_seeded_draws() -> None:
    differences = [0.1, -0.05, 0.2, 0.0, 0.15, -0.1, 0.3, 0.05, -0.2, 0.1, 0.0, 0.25, 0.1, -0.05, 0.2]

    first, second = difference(differences, 0.05), difference(differences, 0.05)

    assert first is not None and second is not None
    assert not first.sign_flip.exact
    assert first.sign_flip.p == second.sign_flip.p
    assert first.sign_flip.p == pytest.approx(scipy_sign_flip(differences), abs=0.01)


def test_one_case_is_inconclusive_and_has_no_interval() -> None:
    found = difference([0.8], 0.05)

    assert found is not None
    assert found.verdict is Verdict.INCONCLUSIVE
    assert (found.low, found.high, found.p) == (None, None, None)
    assert found.sign_flip.smallest == 1.0


def test_no_paired_case_gives_no_difference_at_all() -> None:
    assert difference([], 0.05) is None


@pytest.mark.parametrize(
    ("per_case", "verdict"),
    [
        ([0.4, 0.5, 0.6, 0.5], Verdict.HELPS),
        ([-0.4, -0.5, -0.6, -0.5], Verdict.HURTS),
        ([0.01, -0.01, 0.0, 0.02, -0.02, 0.0], Verdict.NO_DIFFERENCE),
        ([0.5, -0.4, 0.1], Verdict.INCONCLUSIVE),
    ],
)
def test_the_verdict_follows_the_interval(per_case: list[float], verdict: Verdict) -> None:
    found = difference(per_case, 0.05)
    assert found is not None
    assert found.verdict is verdict


@pytest.mark.parametrize(
    ("value", "cases", "verdict"),
    [
        (1.0, 2, Verdict.INCONCLUSIVE),
        (1.0, 5, Verdict.INCONCLUSIVE),
        (1.0, 6, Verdict.HELPS),
        (-1.0, 6, Verdict.HURTS),
        (0.0, 5, Verdict.INCONCLUSIVE),
        (0.0, 6, Verdict.NO_DIFFERENCE),
    ],
)
def test_cases_that_all_differ_alike_need_six_of_them(value: float, cases: int, verdict: Verdict) -> None:
    found = difference([value] * cases, 0.05)
    assert found is not None
    assert found.verdict is verdict
    assert found.p is None


def test_differences_equal_on_paper_are_equal_in_floats() -> None:
    found = difference([0.3 - 0.1, 0.4 - 0.2, 0.6 - 0.4], 0.05)
    assert found is not None
    assert found.se == 0.0
    assert found.verdict is Verdict.INCONCLUSIVE


def test_non_inferiority_looks_at_the_lower_bound_only() -> None:
    better, worse = difference([0.2, 0.3, 0.1, 0.2], 0.05), difference([0.0, -0.3, -0.1, 0.2], 0.05)
    assert better is not None and worse is not None
    assert is_not_worse(better, 0.05)
    assert is_not_worse(worse, 0.05) is False


def test_power_reaches_four_in_five_at_the_cases_asked_for() -> None:
    variance, effect = 0.04, 0.15
    needed = cases_needed(variance, effect)
    assert needed is not None

    draw = np.random.default_rng(7)
    samples = draw.normal(effect, math.sqrt(variance), (4000, needed))
    power = (stats.ttest_1samp(samples, 0.0, axis=1).pvalue < 0.05).mean()

    assert 0.78 <= power <= 0.84
    assert smallest_detectable(variance, needed) == pytest.approx(effect, rel=0.05)


def test_an_effect_of_nothing_needs_no_number_of_cases() -> None:
    assert cases_needed(0.04, 0.0) is None
    assert cases_needed(0.25, 0.0001) is None


def test_the_planning_variance_is_never_below_what_repeats_leave() -> None:
    assert planning_variance([0.1, 0.1, 0.1], ArmSpread(0.09, 3), ArmSpread(0.06, 3)) == pytest.approx(0.05)
    assert planning_variance([0.1, 0.5], ArmSpread(None, 1), ArmSpread(None, 1)) == pytest.approx(0.08)


def test_costs_are_compared_as_a_geometric_mean_of_ratios() -> None:
    found = ratio([(200.0, 100.0), (50.0, 100.0), (0.0, 100.0)])
    assert found is not None
    assert found.cases == 2
    assert found.ratio == pytest.approx(1.0)


def test_an_arm_mean_weighs_cases_not_runs() -> None:
    interval = mean_interval([0.2, 0.8])
    assert interval is not None
    assert interval.mean == pytest.approx(0.5)
    assert interval.high - interval.mean == pytest.approx(stats.t.ppf(0.975, 1) * 0.3)
