"""Settings of a batch as the command line says them."""

import pytest

from cli.options import batch_settings
from service.errors import BadInput


def test_values_are_read_as_json_and_else_as_text_and_an_option_of_its_own_wins() -> None:
    others = ["max_cost_usd=2.5", "judging=batch", 'judge_models=["a","b"]', "analyst=false", "runs_per_eval=9"]

    said = batch_settings(3, None, None, None, None, None, others)

    assert said == {
        "max_cost_usd": 2.5,
        "judging": "batch",
        "judge_models": ["a", "b"],
        "analyst": False,
        "runs_per_eval": 3,
    }


def test_a_word_without_a_value_is_refused() -> None:
    with pytest.raises(BadInput, match="write it as NAME=VALUE"):
        batch_settings(None, None, None, None, None, None, ["max_cost_usd"])
