import pytest
from scipy import special, stats

from service.aggregation.distributions import incomplete_beta, t_quantile, t_two_sided, t_upper


@pytest.mark.parametrize("a", [0.5, 1.0, 2.5, 30.0, 500.0])
@pytest.mark.parametrize("b", [0.5, 1.0, 7.0, 200.0])
@pytest.mark.parametrize("x", [0.0, 1e-6, 0.1, 0.5, 0.9, 1 - 1e-9, 1.0])
def test_the_incomplete_beta_function_agrees_with_scipy(a: float, b: float, x: float) -> None:
    assert incomplete_beta(a, b, x) == pytest.approx(special.betainc(a, b, x), rel=1e-10, abs=1e-300)


@pytest.mark.parametrize("df", [1, 2, 4, 9, 19.5, 49, 999])
@pytest.mark.parametrize("t", [-8.0, -2.1, 0.0, 0.3, 1.96, 12.0, 60.0])
def test_tail_probabilities_agree_with_scipy(t: float, df: float) -> None:
    assert t_upper(t, df) == pytest.approx(stats.t.sf(t, df), rel=1e-9)
    assert t_two_sided(t, df) == pytest.approx(2 * stats.t.sf(abs(t), df), rel=1e-9)


@pytest.mark.parametrize("df", [1, 2, 4, 9, 19.5, 49, 999])
@pytest.mark.parametrize("probability", [0.025, 0.2, 0.5, 0.8, 0.95, 0.975, 0.9999])
def test_quantiles_agree_with_scipy(probability: float, df: float) -> None:
    assert t_quantile(probability, df) == pytest.approx(stats.t.ppf(probability, df), rel=1e-9, abs=1e-12)
