"""What a call costs."""

import pytest

from service.models.port import Tokens
from service.models.prices import Prices, known_prices


def test_every_kind_of_token_has_its_own_price() -> None:
    row = {"input": 1.0, "output": 10.0, "cache_read": 0.1, "cache_write_5m": 2.0, "cache_write_1h": 3.0}
    prices = Prices({"models": {"m": [row]}})
    tokens = Tokens(input=1_000_000, output=100_000, cache_read=1_000_000, cache_write=200_000, cache_write_1h=100_000)

    assert prices.cost("m", tokens) == pytest.approx(1.0 + 1.0 + 0.1 + 0.2 + 0.3)
    assert prices.cost("m", tokens, "batch") == pytest.approx(2.6 / 2)


def test_a_model_nobody_priced_costs_nothing_we_could_name() -> None:
    assert known_prices().cost("claude-of-tomorrow", Tokens(input=10)) is None


def test_a_long_prompt_may_cost_more() -> None:
    short, long = Tokens(input=100_000), Tokens(input=50_000, cache_read=50_001)
    prices = known_prices()

    assert prices.cost("claude-haiku-5-5", short) == pytest.approx(0.01)
    assert prices.cost("claude-haiku-5-5", long) == pytest.approx(0.05 * 0.5 + 0.050001 * 0.05)


def test_the_simulated_model_is_free() -> None:
    assert known_prices().cost("simulated", Tokens(input=10, output=10)) == 0.0


def test_the_worst_case_writes_the_whole_prompt_into_the_cache() -> None:
    prices = known_prices()

    assert prices.worst("claude-haiku-4-5", 1_000_000, 1_000_000) == pytest.approx(1.25 + 5.0)
    assert prices.worst("claude-of-tomorrow", 10, 10) is None
