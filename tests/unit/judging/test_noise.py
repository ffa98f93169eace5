"""How steady the judge is."""

import pytest

from schemas.grading import DimensionScore, GradedExpectation, Grading
from schemas.structural import CheckedExpectation, Structural
from service.judging.noise import JudgedTwice, is_sampled, measure_noise


def graded(*passed: bool, score: int = 3) -> Grading:
    statements = tuple(GradedExpectation(text=f"s{n}", passed=value) for n, value in enumerate(passed))
    return Grading(expectations=statements, rubric_scores=(DimensionScore(name="d", score=score),))


def test_flips_are_counted_over_what_the_judge_decided_twice() -> None:
    by_code = CheckedExpectation(text="s0", type="file_exists", passed=True, evidence="")
    pair = JudgedTwice(graded(True, True, False), graded(True, False, False), Structural(expectations=(by_code,)))

    noise = measure_noise([pair])

    assert (noise.statements, noise.flips, noise.flip_rate) == (2, 1, 0.5)


def test_agreement_of_scores_is_told_by_dimension() -> None:
    pairs = [JudgedTwice(graded(score=a), graded(score=b)) for a, b in [(3, 3), (3, 4), (1, 5), (2, 2)]]

    agreement = measure_noise(pairs).scores["d"]

    assert (agreement.pairs, agreement.exact, agreement.close) == (4, 0.5, 0.75)
    assert agreement.mean_difference == pytest.approx(1.25)


def test_without_repeats_there_is_no_rate() -> None:
    assert measure_noise([]).flip_rate is None


def test_the_sample_has_its_share_and_a_larger_one_contains_it() -> None:
    ids = [f"{number:064x}" for number in range(20_000)]

    tenth = {one for one in ids if is_sampled(one, 0.1)}
    fifth = {one for one in ids if is_sampled(one, 0.2)}

    assert len(tenth) == pytest.approx(2_000, rel=0.1)
    assert tenth < fifth
    assert not any(is_sampled(one, 0.0) for one in ids)
    assert all(is_sampled(one, 1.0) for one in ids)
