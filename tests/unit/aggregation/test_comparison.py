import io
import json
import math
import random

import pytest
from scipy import optimize
from support.judged_runs import plan, run

from schemas.comparison import Comparison, OutputRubric
from schemas.dialects import Dialect, write
from schemas.grading import CriterionResult, Grading
from service.aggregation.benchmark import aggregate
from service.aggregation.comparison import Ballot, Label, assignment, completed, contest, logistic, output_rubric
from service.aggregation.history import (
    VersionFacts,
    cases_history,
    history_figures,
    result_of,
    skill_creator_history,
)
from service.catalogue import figures_of


def test_sub_scores_and_sums_are_those_of_the_sample() -> None:
    a = output_rubric(
        {"correctness": 5, "completeness": 5, "accuracy": 4}, {"organization": 4, "formatting": 5, "usability": 4}
    )
    b = output_rubric(
        {"correctness": 3, "completeness": 2, "accuracy": 3}, {"organization": 3, "formatting": 2, "usability": 3}
    )
    assert (a.content_score, a.structure_score, a.overall_score) == (4.7, 4.3, 9.0)
    assert (b.content_score, b.structure_score, b.overall_score) == (2.7, 2.7, 5.4)


def test_the_judges_own_arithmetic_does_not_count() -> None:
    side = OutputRubric(content={"correctness": 3}, structure={"usability": 2}, overall_score=9.9)
    found = completed(Comparison(winner="A", rubric={"A": side}))
    assert found.rubric is not None and found.output_quality is not None
    assert found.rubric["A"].overall_score == 5.0
    assert found.output_quality["A"].score == 5


def pair(case: int, number: int, first: Label, second: Label) -> list[Ballot]:
    """v1 as A, then v0 as A."""
    return [Ballot(case, number, "v1", "v0", first), Ballot(case, number, "v0", "v1", second)]


def test_a_win_is_what_both_orders_agree_on() -> None:
    ballots = [
        *pair(1, 1, Label.A, Label.B),  # v1 both times
        *pair(2, 1, Label.A, Label.A),  # the first shown both times: a tie
        *pair(3, 1, Label.B, Label.A),  # v0 both times
        *pair(4, 1, Label.TIE, Label.B),  # one order undecided: a tie
    ]
    found = contest(ballots, "v1", "v0")
    assert (found.pairs.won, found.pairs.lost, found.pairs.tied) == (1, 1, 2)
    assert found.case_winners == {1: "v1", 2: None, 3: "v0", 4: None}
    assert found.result == "tie"
    assert found.win_rate is not None and found.win_rate.mean == 0.5
    assert found.bias.order_consistency == 0.5
    assert found.bias.first_position_rate == pytest.approx(4 / 7)


def test_the_majority_of_runs_takes_the_case() -> None:
    ballots = [*pair(1, 1, Label.A, Label.B), *pair(1, 2, Label.A, Label.B), *pair(1, 3, Label.B, Label.A)]
    found = contest(ballots, "v1", "v0")
    assert found.case_winners == {1: "v1"}
    assert found.result == "won"
    assert found.pairs.rate == pytest.approx(2 / 3)


def test_one_win_among_ties_does_not_take_the_case() -> None:
    tied = (Label.A, Label.A)
    one_of_three = [*pair(1, 1, Label.A, Label.B), *pair(1, 2, *tied), *pair(1, 3, *tied)]
    two_of_three = [*pair(2, 1, Label.A, Label.B), *pair(2, 2, Label.A, Label.B), *pair(2, 3, *tied)]
    one_of_two = [*pair(3, 1, Label.A, Label.B), *pair(3, 2, *tied)]
    found = contest([*one_of_three, *two_of_three, *one_of_two], "v1", "v0")
    assert found.case_winners == {1: None, 2: "v1", 3: None}


def test_a_pair_judged_in_one_order_only_decides_nothing() -> None:
    found = contest([Ballot(1, 1, "v1", "v0", Label.A)], "v1", "v0")
    assert (found.pairs.won, found.incomplete, found.win_rate) == (0, 1, None)


def test_the_assignment_is_a_fair_coin_that_falls_the_same_way_again() -> None:
    draws = [assignment("batch", case, 1, ("v0", "v1"))["A"] for case in range(400)]
    assert draws == [assignment("batch", case, 1, ("v0", "v1"))["A"] for case in range(400)]
    assert 160 < draws.count("v1") < 240


def test_a_judge_that_loves_length_is_found_out() -> None:
    ballots = []
    for case in range(20):
        lengths = (2000, 500) if case % 4 else (500, 2000)  # v1 is mostly longer, and the longer always wins
        winner = "v1" if lengths[0] > lengths[1] else "v0"
        ballots.append(Ballot(case, 1, "v1", "v0", Label.A if winner == "v1" else Label.B, *lengths))
        ballots.append(Ballot(case, 1, "v0", "v1", Label.A if winner == "v0" else Label.B, *reversed(lengths)))
    found = contest(ballots, "v1", "v0")
    assert found.pairs.rate == 0.75
    assert found.bias.longer_wins_rate == 1.0
    assert found.bias.rate_at_equal_length == pytest.approx(0.5, abs=0.1)


def test_the_logistic_fit_agrees_with_scipy() -> None:
    draw = random.Random(3)
    points = [(x := draw.gauss(0, 1), draw.random() < 1 / (1 + math.exp(-(0.5 + 1.2 * x)))) for _ in range(200)]

    def loss(b: list[float]) -> float:
        fit = sum(math.log1p(math.exp(-(b[0] + b[1] * x) * (1 if y else -1))) for x, y in points)
        return fit + 0.05 * (b[0] ** 2 + b[1] ** 2)

    expected = optimize.minimize(loss, [0.0, 0.0]).x
    assert logistic(points) == pytest.approx(tuple(expected), abs=1e-3)


VERSIONS = (
    VersionFacts(0, "2026-01-15T10:30:00Z", pass_rate=0.65, average_score=3.21),
    VersionFacts(1, "2026-01-16T10:30:00Z", 0, pass_rate=0.75, average_score=3.84, result="won"),
    VersionFacts(2, "2026-01-17T10:30:00Z", 1, pass_rate=0.85, average_score=4.05, result="won"),
)


def test_the_skill_creator_history_is_that_of_the_sample() -> None:
    found = write(skill_creator_history("pdf", VERSIONS), Dialect.SKILL_CREATOR)
    assert isinstance(found, dict)
    assert found["started_at"] == "2026-01-15T10:30:00Z"
    assert found["current_best"] == "v2"
    iterations = found["iterations"]
    assert isinstance(iterations, list)
    assert iterations[0] == {
        "version": "v0",
        "parent": None,
        "expectation_pass_rate": 0.65,
        "grading_result": "baseline",
        "is_current_best": False,
    }
    assert [i["grading_result"] for i in iterations if isinstance(i, dict)] == ["baseline", "won", "won"]


def test_an_average_score_belongs_to_its_own_version() -> None:
    found = cases_history(VERSIONS)
    assert found.versions is not None
    assert [version.average_score for version in found.versions] == [3.2, 3.8, 4.0]
    assert found.current_version == 2


def test_a_lost_or_unclear_version_does_not_become_the_best() -> None:
    versions = (
        VersionFacts(0, "t", pass_rate=0.6),
        VersionFacts(1, "t", 0, pass_rate=0.9, result="tie"),
        VersionFacts(2, "t", 1, pass_rate=0.5, result="lost"),
        VersionFacts(3, "t", 2, pass_rate=0.55, result="won"),
    )
    assert skill_creator_history("x", versions).current_best == "v0"


@pytest.mark.parametrize(
    ("verdict", "result"),
    [("helps", "won"), ("hurts", "lost"), ("no meaningful difference", "tie"), ("inconclusive", "tie")],
)
def test_only_a_clear_verdict_wins_or_loses(verdict: str, result: str) -> None:
    assert result_of(verdict) == result


@pytest.mark.parametrize(("suite", "best"), [("one", "v2"), ("other", "v1")])
def test_a_branch_is_best_only_by_a_pass_rate_in_the_same_suite(suite: str, best: str) -> None:
    versions = [
        VersionFacts(0, "t", suite="one", pass_rate=0.5),
        VersionFacts(1, "t", 0, suite="one", pass_rate=0.6, result="won"),
        VersionFacts(2, "t", 0, suite=suite, pass_rate=0.9, result="won"),
    ]
    assert skill_creator_history("pdf", versions).current_best == best


def test_what_a_history_needs_is_the_same_from_a_benchmark_and_without_one() -> None:
    def judged(*scores: int) -> Grading:
        return Grading(results=tuple(CriterionResult(criterion=f"c{n}", score=s) for n, s in enumerate(scores)))

    records = [
        run(case, arm, number, judged(number + 1, case + lift))
        for case in (1, 2)
        for arm, lift in (("with_skill", 3), ("without_skill", 0))
        for number in range(1, case + 2)
    ]
    found, out = aggregate(records, plan()), io.BytesIO()
    found.write_benchmark(out)

    kept = figures_of(json.loads(out.getvalue()))
    assert kept == history_figures(found)
    assert kept["configurations"]["with_skill"]["average_score"] == pytest.approx(3.625)
    found.close()
