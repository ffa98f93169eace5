"""Student's t distribution in plain Python, so that a verdict needs no numerical library at run time."""

import math
from functools import lru_cache

_TINY = 1e-300
_PRECISION = 1e-15
_MOST_STEPS = 10_000


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function I_x(a, b) for 0 <= x <= 1."""
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    # The continued fraction converges fast only on the near side of the mean; the far side follows by symmetry.
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - incomplete_beta(b, a, 1.0 - x)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    return math.exp(log_front) / (a * _continued_fraction(a, b, x))


def _coefficient(step: int, a: float, b: float, x: float) -> float:
    """The numerator of the given step of DLMF 8.17.22."""
    m = step // 2
    if step % 2 == 0:
        return m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
    return -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))


def _continued_fraction(a: float, b: float, x: float) -> float:
    """1 + d1/(1 + d2/(1 + ...)), evaluated forwards by Lentz's method."""
    value, c, d = 1.0, 1.0, 0.0
    for step in range(1, _MOST_STEPS):
        numerator = _coefficient(step, a, b, x)
        d = 1.0 / _away_from_zero(1.0 + numerator * d)
        c = _away_from_zero(1.0 + numerator / c)
        value *= c * d
        if abs(c * d - 1.0) < _PRECISION:
            break
    return value


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def t_two_sided(t: float, df: float) -> float:
    """P(|T| >= |t|)."""
    return incomplete_beta(df / 2.0, 0.5, df / (df + t * t))


def t_upper(t: float, df: float) -> float:
    """P(T >= t)."""
    half = t_two_sided(t, df) / 2.0
    return half if t >= 0.0 else 1.0 - half


@lru_cache(maxsize=4096)
def t_quantile(probability: float, df: float) -> float:
    """The t with P(T <= t) = probability, for 0 < probability < 1."""
    if probability == 0.5:
        return 0.0
    if probability < 0.5:
        return -t_quantile(1.0 - probability, df)
    low, high = 0.0, 2.0
    while t_upper(high, df) > 1.0 - probability:
        low, high = high, high * 2.0
    guess = (low + high) / 2.0
    for _ in range(200):
        excess = t_upper(guess, df) - (1.0 - probability)
        low, high = (guess, high) if excess > 0.0 else (low, guess)
        newton = guess + excess / _t_density(guess, df)
        # Newton's step where it stays between the bounds, else the middle: fast, and never lost.
        following = newton if low < newton < high else (low + high) / 2.0
        if abs(following - guess) <= 1e-14 * guess:
            return following
        guess = following
    return guess


def _t_density(t: float, df: float) -> float:
    log_constant = math.lgamma((df + 1) / 2) - math.lgamma(df / 2) - 0.5 * math.log(df * math.pi)
    return math.exp(log_constant - (df + 1) / 2 * math.log1p(t * t / df))
