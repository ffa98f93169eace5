import numpy as np
import pytest
from scipy import stats

from service.aggregation.permutation import benjamini_hochberg, passes_differ, scores_differ
from service.aggregation.rates import normalized_gain, pass_at_k, pass_hat_k, wilson


def test_three_of_three_against_none_of_three_is_one_in_ten() -> None:
    assert passes_differ(3, 3, 0, 3) == pytest.approx(0.1)


@pytest.mark.parametrize("counts", [(3, 5, 1, 5), (5, 6, 2, 6), (0, 4, 0, 4), (5, 7, 2, 6)])
def test_pass_rates_are_permuted_exactly(counts: tuple[int, int, int, int]) -> None:
    a, n, b, m = counts
    left, right = np.array([1] * a + [0] * (n - a)), np.array([1] * b + [0] * (m - b))
    expected = stats.permutation_test(
        (left, right), lambda x, y: abs(x.mean() - y.mean()), n_resamples=np.inf, alternative="greater"
    )
    assert passes_differ(a, n, b, m) == pytest.approx(expected.pvalue, abs=1e-9)


def test_an_item_seen_in_one_arm_only_has_no_p() -> None:
    assert passes_differ(3, 3, 0, 0) is None


def test_scores_are_permuted_inside_their_case() -> None:
    separated = scores_differ([({5: 3}, {1: 3})])
    assert separated == pytest.approx(0.1, abs=0.02)
    assert scores_differ([({5: 3}, {1: 3}), ({4: 3}, {2: 3})]) < 0.03
    assert scores_differ([({4: 3}, {4: 3})]) == 1.0
    assert scores_differ([({4: 3}, {})]) is None


def test_many_cases_use_the_normal_law_and_agree_with_drawing() -> None:
    strata = [({4: 2, 3: 1}, {3: 2, 4: 1})] * 50
    drawn, normal = scores_differ(strata), scores_differ([*strata, ({4: 1}, {4: 1})])
    assert drawn is not None and normal is not None
    assert normal == pytest.approx(drawn, abs=0.02)


def test_many_runs_of_one_case_use_the_normal_law_and_agree_with_drawing() -> None:
    small, large = ({5: 8, 4: 6, 3: 6}, {5: 5, 4: 6, 3: 9}), ({5: 9, 4: 6, 3: 6}, {5: 5, 4: 6, 3: 9})
    drawn, normal = scores_differ([small]), scores_differ([large])
    assert drawn is not None and normal is not None
    left, right = ([score for score, n in arm.items() for _ in range(n)] for arm in large)
    expected = stats.permutation_test(
        (left, right), lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis), n_resamples=20_000, rng=1
    )
    assert normal == pytest.approx(expected.pvalue, abs=0.02)
    assert drawn == pytest.approx(normal, abs=0.15)


def test_false_discoveries_are_controlled_as_scipy_does() -> None:
    ps = [0.001, 0.2, 0.03, 0.04, 0.9, 0.012]
    assert benjamini_hochberg(ps) == pytest.approx(list(stats.false_discovery_control(ps)))
    assert benjamini_hochberg([]) == []


def test_rates_have_wilson_intervals() -> None:
    expected = stats.binomtest(4, 9).proportion_ci(method="wilson")
    assert wilson(4, 9) == pytest.approx((expected.low, expected.high))
    assert wilson(0, 0) is None


def test_pass_at_k_is_one_success_and_pass_hat_k_is_all() -> None:
    assert pass_at_k(1, 3, 2) == pytest.approx(2 / 3)
    assert pass_hat_k(2, 3, 2) == pytest.approx(1 / 3)
    assert pass_at_k(0, 3, 3) == 0.0
    assert pass_hat_k(3, 3, 3) == 1.0


def test_gain_is_undefined_without_room() -> None:
    assert normalized_gain(0.9, 0.5) == pytest.approx(0.8)
    assert normalized_gain(1.0, 1.0) is None
