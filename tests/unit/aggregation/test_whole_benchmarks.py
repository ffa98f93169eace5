"""Whole benchmarks, from judged runs to the written file, against scipy on the same runs."""

import io
import json
import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from scipy import stats
from support.judged_runs import passing, plan, run

from service.aggregation.benchmark import aggregate
from service.aggregation.records import RunRecord

ARMS = ("with_skill", "without_skill")
DIMENSIONS = ("clarity", "depth")
Value = Callable[[RunRecord], float]


def random_runs(seed: int) -> list[RunRecord]:
    """3 to 10 cases with 1 to 4 runs in each arm, not always as many in one as in the other."""
    draw = random.Random(seed)
    statements, effect, price = draw.randint(3, 9), draw.uniform(-0.2, 0.4), draw.uniform(0.7, 1.8)

    def one(case: int, arm: str, number: int, ease: float) -> RunRecord:
        chance = min(0.95, max(0.05, ease + effect * (arm == "with_skill")))
        scores = {name: sum(draw.random() < chance for _ in range(4)) + 1 for name in DIMENSIONS}
        judged = passing(sum(draw.random() < chance for _ in range(statements)), statements, scores)
        factor = draw.uniform(0.5, 1.5) * (price if arm == "with_skill" else 1.0)
        return run(case, arm, number, judged, seconds=round(40 * factor, 2), tokens=round(3000 * factor))

    eases = [draw.uniform(0.1, 0.9) for _ in range(draw.randint(3, 10))]
    return [
        one(case, arm, number, ease)
        for case, ease in enumerate(eases)
        for arm in ARMS
        for number in range(1, draw.randint(1, 4) + 1)
    ]


def statistics_of(records: Iterable[RunRecord]) -> dict[str, Any]:
    found, out = aggregate(records, plan()), io.BytesIO()
    found.write_benchmark(out)
    found.close()
    written = json.loads(out.getvalue())["statistics"]
    assert isinstance(written, dict)
    return written


def case_means(records: list[RunRecord], value: Value) -> tuple[np.ndarray, np.ndarray]:
    """Both arms' means, case by case."""
    cases = sorted({int(record.case.id) for record in records})
    one, zero = (
        [np.mean([value(r) for r in records if r.case.id == case and r.configuration == arm]) for case in cases]
        for arm in ARMS
    )
    return np.array(one), np.array(zero)


def pass_rate(record: RunRecord) -> float:
    assert record.grading is not None and record.grading.expectations
    return float(np.mean([bool(statement.passed) for statement in record.grading.expectations]))


def dimension(name: str) -> Value:
    def value(record: RunRecord) -> float:
        assert record.grading is not None and record.grading.rubric_scores
        return float(next(one.score for one in record.grading.rubric_scores if one.name == name and one.score))

    return value


def rubric(record: RunRecord) -> float:
    return sum(dimension(name)(record) for name in DIMENSIONS) / len(DIMENSIONS) / 5


def seconds(record: RunRecord) -> float:
    assert record.timing is not None and record.timing.executor_duration_seconds is not None
    return float(record.timing.executor_duration_seconds)


def tokens(record: RunRecord) -> float:
    assert record.tokens is not None
    return record.tokens.total


def near(value: float) -> Any:
    """The file rounds to four places."""
    return pytest.approx(value, abs=5.1e-5)


def check_metric(metric: dict[str, Any], one: np.ndarray, zero: np.ndarray) -> None:
    for arm, means in zip(ARMS, (one, zero), strict=True):
        told = metric["arms"][arm]
        assert (told["cases"], told["mean"]) == (len(means), near(means.mean()))
        if np.ptp(means) > 1e-12:
            interval = stats.t.interval(0.95, len(means) - 1, means.mean(), stats.sem(means))
            assert (told["ci_low"], told["ci_high"]) == (near(interval[0]), near(interval[1]))
    check_delta(metric["delta"], one, zero)


def check_delta(delta: dict[str, Any], one: np.ndarray, zero: np.ndarray) -> None:
    differences = one - zero
    assert (delta["cases"], delta["mean"]) == (len(one), near(differences.mean()))
    if np.ptp(differences) > 1e-12:
        expected = stats.ttest_rel(one, zero)
        wide, narrow = expected.confidence_interval(0.95), expected.confidence_interval(0.90)
        assert delta["p"] == pytest.approx(expected.pvalue, rel=1e-3)
        assert (delta["ci_low"], delta["ci_high"]) == (near(wide.low), near(wide.high))
        assert (delta["ci90_low"], delta["ci90_high"]) == (near(narrow.low), near(narrow.high))
    assert delta["sign_flip"]["exact"]
    assert delta["sign_flip"]["p"] == pytest.approx(sign_flip(differences), rel=1e-3)


def sign_flip(differences: np.ndarray) -> float:
    """scipy's exact p; sums that are equal on paper are made equal by rounding."""
    found = stats.permutation_test(
        (differences,),
        lambda x, axis: np.round(np.abs(np.mean(x, axis=axis)), 12),
        permutation_type="samples",
        n_resamples=np.inf,
        alternative="greater",
    )
    return float(found.pvalue)


def check_ratio(ratio: dict[str, Any], one: np.ndarray, zero: np.ndarray) -> None:
    expected = stats.ttest_rel(np.log(one), np.log(zero))
    interval = expected.confidence_interval(0.95)
    assert ratio["ratio"] == near(np.exp(np.mean(np.log(one / zero))))
    assert (ratio["ci_low"], ratio["ci_high"]) == (near(np.exp(interval.low)), near(np.exp(interval.high)))
    assert ratio["p"] == pytest.approx(expected.pvalue, rel=1e-3)


@pytest.mark.parametrize("seed", range(20))
def test_a_random_benchmark_says_what_scipy_says_of_its_runs(seed: int) -> None:
    records = random_runs(seed)

    found = statistics_of(records)

    scores: dict[str, Value] = {
        "pass_rate": pass_rate,
        "rubric_normalized": rubric,
        "overall_efficiency": lambda record: (pass_rate(record) + rubric(record)) / 2,
    }
    for name, value in scores.items():
        check_metric(found["metrics"][name], *case_means(records, value))
    assert list(found["dimensions"]) == list(DIMENSIONS)
    for name in DIMENSIONS:
        check_metric(found["dimensions"][name], *case_means(records, dimension(name)))
    for name, value in (("time_seconds", seconds), ("tokens", tokens)):
        check_ratio(found["ratios"][name], *case_means(records, value))
