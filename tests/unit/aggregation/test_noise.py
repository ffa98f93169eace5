"""How steady the judge is, over a batch."""

import io
import json
from dataclasses import replace
from typing import Any

import pytest
from support.judged_runs import plan, run

from schemas.grading import CriterionResult, DimensionScore, GradedExpectation, Grading
from schemas.structural import CheckedExpectation, Structural
from service.aggregation.benchmark import aggregate
from service.aggregation.markdown import benchmark_markdown
from service.aggregation.noise import NoiseTally
from service.aggregation.records import RunRecord


def graded(*passed: bool, score: int = 3) -> Grading:
    statements = tuple(GradedExpectation(text=f"s{n}", passed=value) for n, value in enumerate(passed))
    return Grading(expectations=statements, rubric_scores=(DimensionScore(name="d", score=score),))


def twice(first: Grading, second: Grading, structural: Structural | None = None) -> RunRecord:
    return replace(run(1, "with_skill", 1, first), rejudged=(second,), structural=structural)


def test_flips_are_counted_over_what_the_judge_decided_twice() -> None:
    by_code = CheckedExpectation(text="s0", type="file_exists", passed=True, evidence="")
    noise = NoiseTally()

    noise.add(twice(graded(True, True, False), graded(True, False, False), Structural(expectations=(by_code,))))

    assert (noise.runs, noise.decisions, noise.flips, noise.flip_rate) == (1, 2, 1, 0.5)


def test_agreement_of_scores_is_told_by_dimension() -> None:
    noise = NoiseTally()

    for a, b in [(3, 3), (3, 4), (1, 5), (2, 2)]:
        noise.add(twice(graded(score=a), graded(score=b)))

    agreement = noise.scores["d"]
    assert (agreement.pairs, agreement.exact, agreement.close) == (4, 0.5, 0.75)
    assert agreement.mean_difference == pytest.approx(1.25)


def test_without_repeats_there_is_no_rate_and_no_word() -> None:
    found = aggregate([run(1, "with_skill", 1, graded(True))], plan())

    assert found.tallies.noise.flip_rate is None
    assert benchmark(found)["statistics"]["judge_noise"] is None
    assert "asked twice" not in benchmark_markdown(found)


def test_a_criterion_that_crosses_three_has_flipped_and_its_item_says_so() -> None:
    def scored(score: int) -> Grading:
        return Grading(results=(CriterionResult(criterion="frontmatter", score=score, passed=score >= 3),))

    found = aggregate([twice(scored(3), scored(2)), twice(scored(4), scored(4))], plan())

    said = benchmark(found)
    assert said["statistics"]["judge_noise"] == {
        "runs": 2,
        "failed": 0,
        "decisions": 2,
        "flips": 1,
        "flip_rate": 0.5,
        "scores": {"frontmatter": {"pairs": 2, "exact": 0.5, "close": 1.0, "mean_difference": 0.5}},
    }
    assert said["items"][0]["judge_flip_rate"] == 0.5


def test_a_repeat_without_an_answer_is_counted_and_shown() -> None:
    failed = replace(run(1, "with_skill", 1, graded(True)), rejudge_failed=True)

    found = aggregate([failed, twice(graded(True), graded(False))], plan())

    assert benchmark(found)["statistics"]["judge_noise"]["failed"] == 1
    shown = benchmark_markdown(found)
    assert "1 run judged twice; decided differently: 1 of 1 (100 %). 1 more run gave no usable second answer." in shown
    assert "| d | 1 | 100 % | 100 % | 0.00 |" in shown


def benchmark(found: Any) -> Any:
    out = io.BytesIO()
    found.write_benchmark(out)
    return json.loads(out.getvalue())
