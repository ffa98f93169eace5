"""What a batch will take, and what it could find out."""

import json
from pathlib import Path

import pytest
from support.judging import criteria_run, rubric_run, statement_run
from typer.testing import CliRunner

from cli.main import app
from schemas.kinds import Dialect
from schemas.suite import Case, Suite
from service.judging.estimate import REPAIRED_SHARE, Design, Estimate, estimate, one_judgement
from service.judging.material import JudgeMaterial
from service.judging.settings import JudgeSettings
from service.models.prices import Prices, known_prices

MODEL = "claude-opus-5-5"
JUDGE = JudgeSettings(models=(MODEL,), rejudge_share=0.0)


def suite(cases: int) -> Suite:
    one = statement_run().case
    return Suite(cases=tuple(one.model_copy(update={"id": number}) for number in range(cases)))


def estimated(cases: int, design: Design) -> Estimate:
    return estimate(suite(cases), Dialect.SKILL_CREATOR, design, known_prices())


def test_runs_are_cases_times_arms_times_repeats_and_each_is_judged_once() -> None:
    found = estimated(10, Design(3, 2, MODEL, JUDGE))

    assert (found.cases, found.runs) == (10, 60)
    assert found.judge is not None
    assert found.judge.calls.low == 60
    assert found.cost_usd is not None
    assert 0 < found.cost_usd.low < found.cost_usd.high


def test_a_panel_and_a_sample_cost_what_they_cost() -> None:
    one = estimated(10, Design(3, 2, None, JUDGE)).judge
    three = estimated(10, Design(3, 2, None, JudgeSettings(models=(MODEL,) * 3, rejudge_share=0.5))).judge

    assert one is not None
    assert three is not None
    assert one.cost_usd is not None
    assert three.cost_usd is not None
    assert three.calls.low == pytest.approx(one.calls.low * 4.5)
    assert three.cost_usd.high == pytest.approx(one.cost_usd.high * 4.5)


def test_the_half_price_lane_is_half_the_price() -> None:
    full = estimated(10, Design(3, 2, None, JUDGE))
    half = estimated(10, Design(3, 2, None, JUDGE, half_price=True))

    assert full.cost_usd is not None
    assert half.cost_usd is not None
    assert half.cost_usd.low == pytest.approx(full.cost_usd.low / 2)
    repaired = full.cost_usd.high / (1 + REPAIRED_SHARE) * REPAIRED_SHARE
    assert half.cost_usd.high == pytest.approx((full.cost_usd.high - repaired) / 2 + repaired), "repairs cost the whole"


def test_repairs_are_in_tokens_and_cost_as_they_are_in_calls() -> None:
    found = estimated(10, Design(3, 2, None, JUDGE)).judge
    tokens = one_judgement(statement_run().case, Dialect.SKILL_CREATOR, 1)

    assert found is not None and found.cost_usd is not None
    assert found.calls.high == pytest.approx(60 * (1 + REPAIRED_SHARE))
    assert found.output_tokens.high == pytest.approx(60 * tokens.output * (1 + REPAIRED_SHARE))
    once = known_prices().cost(MODEL, tokens)
    assert once is not None
    assert found.cost_usd.high == pytest.approx(60 * once * (1 + REPAIRED_SHARE))


def test_the_price_of_long_prompts_holds_for_a_turn_and_not_for_a_whole_run() -> None:
    plain = {"input": 1.0, "output": 1.0, "cache_read": 1.0, "cache_write_5m": 1.0, "cache_write_1h": 1.0}
    dear = dict.fromkeys(plain, 100.0)
    tiers = Prices({"models": {"m": [{**plain, "up_to_prompt_tokens": 200_000}, dear]}})

    found = estimate(suite(1), Dialect.SKILL_CREATOR, Design(1, 1, "m"), tiers).execute

    assert found is not None and found.cost_usd is not None
    assert found.input_tokens.high > 200_000, "all turns together are longer than the tier"
    assert found.cost_usd.high == pytest.approx((found.input_tokens.high + found.output_tokens.high) / 1e6)


def test_a_very_large_suite_is_estimated_from_some_of_its_cases() -> None:
    small, large = (estimated(cases, Design(3, 2, None, JUDGE)).judge for cases in (500, 5_250))

    assert small is not None and large is not None
    assert large.calls.low == pytest.approx(small.calls.low * 10.5)
    assert large.input_tokens.high == pytest.approx(small.input_tokens.high * 10.5, rel=0.01)


def test_a_model_without_a_price_has_no_cost() -> None:
    found = estimated(2, Design(1, 1, "somebody-elses-model", JUDGE))

    assert found.execute is not None
    assert found.execute.cost_usd is None
    assert found.cost_usd is None


def test_more_cases_find_smaller_differences_and_beat_more_repeats() -> None:
    def low(cases: int, runs: int) -> float:
        found = estimated(cases, Design(runs, 2)).detectable
        assert found is not None
        return found.low

    assert low(20, 3) < low(10, 3) < low(5, 3)
    assert low(40, 1) < low(10, 10)


def test_the_typical_scale_is_that_of_simulated_benchmarks() -> None:
    found = estimated(10, Design(3, 2)).detectable

    assert found is not None
    assert found.low < 0.19 < found.high


def test_one_arm_or_one_case_compares_nothing() -> None:
    assert estimated(10, Design(3, 1)).detectable is None
    assert estimated(1, Design(3, 2)).detectable is None


def test_cases_that_code_decides_alone_are_not_judged() -> None:
    structural_only = Suite(cases=(Case(id=1, prompt="p"),))

    assert estimate(structural_only, Dialect.SKILL_EVALUATOR, Design(3, 2, None, JUDGE), known_prices()).judge is None


@pytest.mark.parametrize("material", [rubric_run(), criteria_run()], ids=lambda run: str(run.dialect))
def test_every_dialect_can_be_estimated(material: JudgeMaterial) -> None:
    found = estimate(Suite(cases=(material.case,)), material.dialect, Design(1, 2, None, JUDGE), known_prices())

    assert found.judge is not None


def written(folder: Path) -> Path:
    evals = [{"id": n, "prompt": "p", "expectations": ["The output is right"]} for n in range(1, 9)]
    file = folder / "evals.json"
    file.write_text(json.dumps({"skill_name": "s", "evals": evals}))
    return file


def test_the_command_prints_what_the_options_say(tmp_path: Path) -> None:
    options = ["--runs", "2", "--judge-model", MODEL, "--executor-model", "claude-sonnet-5-5"]

    result = CliRunner().invoke(app, ["estimate", str(written(tmp_path)), *options])

    assert result.exit_code == 0, result.output
    assert "8 cases x 2 configurations x 2 runs = 32 runs" in result.output
    assert "four times out of five" in result.output


def test_the_command_prints_json_for_programs(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["estimate", str(written(tmp_path)), "--judge-model", MODEL, "--json"])

    assert json.loads(result.output)["judge"]["calls"]["low"] == pytest.approx(8 * 2 * 3 * 1.1)


def test_what_is_no_suite_is_refused_with_the_remedy(tmp_path: Path) -> None:
    file = tmp_path / "other.json"
    file.write_text("[1, 2]")

    result = CliRunner().invoke(app, ["estimate", str(file)])

    assert "assay validate" in str(result.exception)


def test_the_command_judges_as_the_installation_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["estimate", str(written(tmp_path)), "--judge-model", MODEL, "--runs", "200"]
    plain = CliRunner().invoke(app, words).output
    monkeypatch.setenv("ASSAY_JUDGING", "batch")
    half = CliRunner().invoke(app, words).output

    assert "half price" not in plain, "3,200 runs are many, but batches are judged at once unless somebody says so"
    assert "judged at half price" in half
