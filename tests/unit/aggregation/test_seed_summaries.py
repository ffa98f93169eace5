"""The `run_summary` of each sample benchmark, whole, out of runs that give it."""

import io
import json
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

from support.judged_runs import grading, passing, plan, run

from schemas.grading import RubricSummary
from service.aggregation.benchmark import aggregate
from service.aggregation.records import BatchPlan, CaseFacts, RunRecord

SAMPLES = Path(__file__).parents[2] / "fixtures" / "samples"


def sample(name: str) -> dict[str, Any]:
    """The sample's own block; Decimals, because they remember how many places were written."""
    text = (SAMPLES / name / "benchmark.json").read_text()
    summary = json.loads(text, parse_float=Decimal)["run_summary"]
    assert isinstance(summary, dict)
    return summary


def summary_of(records: Iterable[RunRecord], batch: BatchPlan) -> dict[str, Any]:
    found, out = aggregate(records, batch), io.BytesIO()
    found.write_benchmark(out)
    found.close()
    summary = json.loads(out.getvalue())["run_summary"]
    assert isinstance(summary, dict)
    return summary


def to_the_places_of(shown: Any, value: Any) -> Any:
    """A value with its figures rounded as the sample rounds them; what the sample has not stays as it is."""
    if isinstance(shown, dict) and isinstance(value, dict):
        return {name: to_the_places_of(shown.get(name), one) for name, one in value.items()}
    if isinstance(shown, Decimal):
        return round(Decimal(str(value)), -int(shown.as_tuple().exponent))
    return round(value) if isinstance(shown, int) else value


# Statements passed of 100, the rubric in percent, seconds, tokens: of nine runs.
EVALUATED = [
    (80, 80, 32.0, 3200),
    (90, 86, 58.0, 4100),
    (81, 86, 33.5, 4100),
    (89, 80, 56.0, 4100),
    (80, 80, 58.0, 3310),
    (80, 87, 58.0, 3300),
    (88, 88, 35.5, 4060),
    (90, 81, 39.5, 4000),
    (87, 88, 34.5, 4030),
]
# The mean scores of a panel on both dimensions, of fifteen runs.
TDD = (4.0, 5.0, 4.0, 4.4, 4.0, 4.0, 4.0, 4.0, 4.7, 4.0, 4.9, 4.0, 4.0, 4.0, 4.0)
FAKES = (4.0, 5.0, 4.7, 5.0, 5.0, 4.9, 4.7, 4.9, 4.9, 4.7, 4.8, 4.8, 4.8, 4.8, 5.0)


def evaluated_runs() -> Iterable[RunRecord]:
    """Nine runs with everything; of six others only both dimensions are known, as their rubric is not complete."""
    scores = [{"tdd_philosophy": tdd, "fake_driven_correctness": fakes} for tdd, fakes in zip(TDD, FAKES, strict=True)]
    for number, (passed, rubric, seconds, tokens) in enumerate(EVALUATED):
        judged = passing(passed, 100, scores[number]).model_copy(
            update={"rubric_summary": RubricSummary(weighted_mean=rubric / 20, normalized=rubric / 100)}
        )
        yield run(1, "with_skill", number + 1, judged, seconds=seconds, tokens=tokens)
    partial = CaseFacts(2, weights={"tdd_philosophy": 4.0, "fake_driven_correctness": 1.0, "naming": 1.0})
    for number, given in enumerate(scores[len(EVALUATED) :]):
        yield run(partial, "with_skill", number + 1, grading(scores=given))


def test_the_skill_evaluators_whole_block_comes_out_of_runs_that_give_it() -> None:
    expected = sample("skill_evaluator")

    found = summary_of(evaluated_runs(), plan("with_skill"))

    assert to_the_places_of(expected, found) == expected
    assert list(found["with_skill"]) == list(expected["with_skill"])


# Statements passed of 100, seconds, tokens: three cases of three runs in each arm.
CREATED = {
    "with_skill": (
        (80, 90, 80, 89, 85, 81, 80, 90, 90),
        (32.0, 58.0, 33.5, 56.0, 58.0, 58.0, 35.5, 39.5, 34.5),
        (3200, 4100, 4100, 4100, 3310, 3300, 4060, 4000, 4030),
    ),
    "without_skill": (
        (28, 45, 28, 29, 30, 28, 41, 45, 41),
        (24.0, 42.0, 25.0, 41.0, 24.0, 30.5, 25.0, 41.5, 35.0),
        (1800, 2500, 1970, 2450, 1910, 2280, 2390, 1800, 1800),
    ),
}


def created_runs() -> Iterable[RunRecord]:
    for case in range(3):
        for arm, figures in CREATED.items():
            for number in range(3):
                passed, seconds, tokens = (column[3 * case + number] for column in figures)
                yield run(case + 1, arm, number + 1, passing(int(passed), 100), seconds=seconds, tokens=int(tokens))


def test_the_skill_creators_whole_block_comes_out_of_runs_that_give_it() -> None:
    expected = sample("skill_creator")

    found = summary_of(created_runs(), plan())

    # What the newer dialect adds stands beside it; without a rubric it says the same as the pass rate.
    for arm in CREATED:
        assert found[arm].pop("overall_efficiency") == found[arm]["pass_rate"]
        assert found[arm].pop("consistency") > 0
    assert found["delta"].pop("overall_efficiency") == "+0.50"
    assert to_the_places_of(expected, found) == expected
    assert [list(found), list(found["with_skill"])] == [list(expected), list(expected["with_skill"])]
