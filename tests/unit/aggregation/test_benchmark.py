import io
import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from support.judged_runs import grading, passing, plan, run

from schemas.dialects import Kind, read
from schemas.grading import CriterionResult, GradedExpectation, Grading, RubricSummary
from schemas.states import Outcome, Role
from schemas.structural import CheckedExpectation, Structural, Summary
from schemas.timing import Timing
from service.aggregation.benchmark import aggregate
from service.aggregation.markdown import benchmark_markdown
from service.aggregation.records import Arm, BatchPlan, CaseFacts, Options, RunRecord, Tokens
from service.aggregation.scores import score, weighted_mean
from service.aggregation.summary import consistency


def benchmark(records: Iterable[RunRecord], batch: BatchPlan) -> dict[str, Any]:
    aggregates = aggregate(records, batch)
    out = io.BytesIO()
    aggregates.write_benchmark(out)
    aggregates.close()
    found = json.loads(out.getvalue())
    assert isinstance(found, dict)
    return found


def test_the_skill_creator_sample_comes_out_of_runs_that_give_it() -> None:
    rates = {"with_skill": (16, 17, 18), "without_skill": (6, 7, 8)}  # of 20: 0.85 and 0.35
    seconds = {"with_skill": (32.0, 45.0, 58.0), "without_skill": (24.0, 30.0, 42.0)}  # 45 and 32
    tokens = {"with_skill": (3200, 4100, 4100), "without_skill": (1800, 2000, 2500)}  # 3800 and 2100
    records = [
        run(1, arm, k + 1, passing(rates[arm][k], 20), seconds=seconds[arm][k], tokens=tokens[arm][k])
        for arm in rates
        for k in range(3)
    ]

    summary = benchmark(records, plan())["run_summary"]

    assert list(summary) == ["with_skill", "without_skill", "delta"]
    assert summary["with_skill"]["pass_rate"] == {"mean": 0.85, "stddev": 0.05, "min": 0.8, "max": 0.9}
    assert summary["with_skill"]["time_seconds"] == {"mean": 45.0, "stddev": 13.0, "min": 32.0, "max": 58.0}
    assert summary["with_skill"]["tokens"]["mean"] == 3800
    assert (summary["with_skill"]["tokens"]["min"], summary["with_skill"]["tokens"]["max"]) == (3200, 4100)
    assert summary["delta"]["pass_rate"] == "+0.50"
    assert summary["delta"]["time_seconds"] == "+13.0"
    assert summary["delta"]["tokens"] == "+1700"


def test_the_skill_evaluator_sample_comes_out_of_runs_that_give_it() -> None:
    facts = CaseFacts(1, "Booking", weights={"tdd_philosophy": 4.0, "fake_driven_correctness": 1.0})
    scores = {"tdd_philosophy": 4, "fake_driven_correctness": 5}  # (4*4 + 5*1)/5 = 4.2
    assert weighted_mean(scores, facts.weights) == pytest.approx(4.2)

    found = score(run(facts, "with_skill", 1, passing(17, 20, scores)), Options())

    assert found.pass_rate == pytest.approx(0.85)
    assert found.rubric_normalized == pytest.approx(0.84)
    assert found.overall_efficiency == pytest.approx(0.845)
    assert round(consistency(0.845, 0.03), 2) == 0.96


def test_the_weights_are_the_suites_never_the_judges() -> None:
    facts = CaseFacts(1, weights={"clarity": 3.0, "depth": 1.0})
    judged = passing(1, 1, {"clarity": 5, "depth": 1}).model_copy(
        update={"rubric_summary": RubricSummary(weighted_mean=3.0, normalized=0.6)}
    )
    assert score(run(facts, "with_skill", 1, judged), Options()).rubric_normalized == pytest.approx(0.8)


def test_without_the_suite_the_graders_own_rubric_summary_counts() -> None:
    judged = Grading(rubric_summary=RubricSummary(weighted_mean=4.2, max_possible=5.0, normalized=0.84))
    assert score(run(1, "with_skill", 1, judged), Options()).rubric_normalized == 0.84


def test_a_dimension_without_a_score_leaves_the_rubric_out_and_says_so() -> None:
    facts = CaseFacts(1, weights={"clarity": 1.0, "depth": 1.0})
    found = score(run(facts, "with_skill", 1, passing(1, 2, {"clarity": 5})), Options())
    assert found.rubric_normalized is None
    assert found.overall_efficiency == 0.5
    assert "depth" in found.warnings[0]


def test_a_gated_run_counts_its_rubric_and_its_unjudged_statements_as_nothing() -> None:
    facts = CaseFacts(1, statements=("is clear", "is short"), weights={"clarity": 1.0})
    checks = (
        CheckedExpectation(text="file there", type="file_exists", passed=True, evidence="", id="S1"),
        CheckedExpectation(text="builds", type="custom_script", passed=False, evidence="", id="S2", critical=True),
    )
    record = RunRecord(
        facts, "with_skill", Role.TREATMENT, 1, Outcome.GATED, Structural(expectations=checks, gate_passed=False)
    )

    found = score(record, Options())

    assert (found.passed, found.total) == (1, 4)
    assert found.rubric_normalized == 0.0
    assert found.overall_efficiency == pytest.approx(0.125)


def test_what_code_decided_is_not_counted_again_when_the_judge_repeats_it() -> None:
    check = CheckedExpectation(text="Uses fixtures", type="file_contains", passed=False, evidence="none", id="S7")
    judged = grading(True, True, texts=("Uses fixtures", "Reads well"))
    record = RunRecord(
        CaseFacts(1), "with_skill", Role.TREATMENT, 1, Outcome.SCORED, Structural(expectations=(check,)), judged
    )
    found = score(record, Options())
    assert (found.passed, found.total) == (1, 2)


def test_a_summary_that_contradicts_its_list_is_a_warning_and_the_list_counts() -> None:
    judged = grading(True, False).model_copy(update={"summary": Summary(passed=2, failed=1, total=3, pass_rate=0.67)})
    found = benchmark([run(1, "with_skill", 1, judged)], plan())
    assert found["runs"][0]["result"]["pass_rate"] == 0.5
    assert "2 of 3" in found["warnings"][0] and "1 of 2" in found["warnings"][0]


def test_criteria_pass_at_three_and_give_the_cases_scores() -> None:
    facts = CaseFacts("case-01", required=frozenset({"frontmatter"}))
    results = (
        CriterionResult(criterion="frontmatter", score=4, reasoning="good"),
        CriterionResult(criterion="token-efficiency", score=2, reasoning="long"),
    )
    result = benchmark([run(facts, "with_skill", 1, Grading(results=results))], plan())["runs"][0]["result"]
    assert (result["overall_score"], result["required_score"], result["overall"]) == (3.0, 4.0, "pass")
    assert result["pass_rate"] == 0.5


def test_nothing_to_check_is_null_and_never_zero() -> None:
    found = benchmark([run(1, "with_skill", 1, grading(scores={"clarity": 4}))], plan())
    assert found["runs"][0]["result"]["pass_rate"] is None
    assert found["run_summary"]["with_skill"]["pass_rate"] is None
    assert found["run_summary"]["with_skill"]["overall_efficiency"]["mean"] == 0.8


def two_arms(treatment: str, control: str, cases: int = 4) -> list[RunRecord]:
    """The treatment passes 3 or 4 of 4, the control 1."""
    return [
        run(case, arm, number, passing(passed, 4))
        for case in range(cases)
        for arm, passed in ((control, 1), (treatment, 3 + case % 2))
        for number in (1, 2)
    ]


def test_old_skill_against_with_skill_has_the_right_sign() -> None:
    found = benchmark(two_arms("with_skill", "old_skill"), plan("with_skill", "old_skill"))
    assert list(found["run_summary"]) == ["with_skill", "old_skill", "delta"]
    assert found["run_summary"]["delta"]["pass_rate"] == "+0.62"
    assert found["statistics"]["verdict"] == "helps"
    assert found["statistics"]["metrics"]["pass_rate"]["delta"]["cases"] == 4


def test_one_arm_only_has_no_delta_and_says_why() -> None:
    records = [record for record in two_arms("with_skill", "without_skill") if record.role is Role.TREATMENT]
    found = benchmark(records, plan())
    assert "delta" not in found["run_summary"]
    assert found["statistics"]["verdict"] == "no comparison"
    assert "without_skill has no run that counts" in found["notes"][0]


def test_missing_gradings_are_outcomes_with_bounds_and_never_zeros() -> None:
    records = two_arms("with_skill", "without_skill")
    lost = run(0, "with_skill", 3, outcome=Outcome.JUDGE_ERROR, reason="grading.json is not JSON")

    found = benchmark([*records, lost], plan())

    assert found["run_summary"]["with_skill"]["pass_rate"]["mean"] == 0.875
    assert found["coverage"]["planned"] == 17
    assert found["coverage"]["outcomes"] == {"scored": 16, "gated": 0, "judge_error": 1}
    assert found["uncounted_runs"][0]["reason"] == "grading.json is not JSON"
    bounds = found["statistics"]["metrics"]["pass_rate"]["bounds_for_missing_runs"]
    # case 0 has 0.75 twice and one lost run: 0.5 at worst, 0.8333 at best, a third of it through 4 cases
    assert bounds == {"low": 0.5625, "high": 0.6458, "missing_runs": 1}
    assert any("1 run missing" in note for note in found["notes"])


def test_runs_the_plan_asks_for_but_nobody_saw_are_missing_too() -> None:
    cases = [CaseFacts(0, "Case 0"), CaseFacts(1, "Case 1"), CaseFacts(2, "Case 2")]
    found = benchmark(two_arms("with_skill", "without_skill", cases=2), plan(cases=cases, runs=2))
    assert (found["coverage"]["planned"], found["coverage"]["counted"]) == (12, 8)
    assert found["coverage"]["cases"] == {"total": 3, "paired": 2, "treatment_only": 0, "control_only": 0, "neither": 1}
    assert found["statistics"]["metrics"]["pass_rate"]["bounds_for_missing_runs"]["missing_runs"] == 4


def test_a_batch_whose_runs_all_failed_says_so() -> None:
    records = [run(1, arm, 1, outcome=Outcome.TIMEOUT) for arm in ("with_skill", "without_skill")]
    found = benchmark(records, plan())
    assert found["runs"] == []
    assert found["statistics"]["verdict"] == "no comparison"
    assert "none of 2 runs counts (timeout 2)" in found["notes"][0]
    assert found["run_summary"]["with_skill"]["pass_rate"] is None
    assert "delta" not in found["run_summary"]


def test_one_run_has_no_spread_and_is_inconclusive() -> None:
    records = [run(1, "with_skill", 1, passing(4, 4)), run(1, "without_skill", 1, passing(0, 4))]
    found = benchmark(records, plan())
    assert found["run_summary"]["with_skill"]["pass_rate"]["stddev"] == 0.0
    assert found["statistics"]["verdict"] == "inconclusive"
    assert found["metadata"]["runs_per_configuration"] == 1


def test_one_and_its_string_are_different_cases_and_zero_is_a_case() -> None:
    records = [run(case, arm, 1, passing(1, 2)) for case in (0, 1, "1") for arm in ("with_skill", "without_skill")]
    found = benchmark(records, plan())
    assert found["metadata"]["evals_run"] == [0, 1, "1"]
    assert found["statistics"]["metrics"]["pass_rate"]["delta"]["cases"] == 3


def test_configurations_without_a_role_are_shown_and_not_compared() -> None:
    arms = (Arm("blue", None), Arm("green", None))
    batch = BatchPlan("pdf", "now", arms)
    records = [run(1, arm, 1, passing(1, 2)) for arm in ("blue", "green")]
    found = benchmark(records, batch)
    assert list(found["run_summary"]) == ["blue", "green"]
    assert found["statistics"]["verdict"] == "no comparison"


def test_time_is_the_executors_and_tokens_are_tokens() -> None:
    timing = Timing(
        total_tokens=84852, duration_ms=23332, total_duration_seconds=191.0, executor_duration_seconds=165.0
    )
    record = RunRecord(
        CaseFacts(1),
        "with_skill",
        Role.TREATMENT,
        1,
        Outcome.SCORED,
        grading=passing(1, 1),
        timing=timing,
        tokens=Tokens(84852, 60000, 20000, 4000, 852),
    )
    result = benchmark([record], plan())["runs"][0]["result"]
    assert (result["time_seconds"], result["tokens"]) == (165.0, 84852)
    assert result["tokens_by_kind"]["cache_read"] == 4000


def test_an_interim_benchmark_is_marked_and_more_runs_may_follow() -> None:
    batch = BatchPlan("pdf", "now", plan().arms, is_interim=True)
    found = benchmark(two_arms("with_skill", "without_skill", cases=1), batch)
    assert found["metadata"]["interim"] is True
    assert found["statistics"]["interim"] is True
    assert found["notes"][0].startswith("Interim: 4 runs so far")


def test_half_a_surrogate_pair_does_not_break_the_file() -> None:
    judged = Grading(expectations=(GradedExpectation(text="broken \ud83d emoji", passed=True),))
    found = benchmark([run(1, "with_skill", 1, judged)], plan())
    assert found["runs"][0]["expectations"][0]["text"] == "broken \ud83d emoji"


def test_what_nobody_judged_says_nothing_about_a_statement() -> None:
    facts = CaseFacts(1, statements=("statement 1",))
    found = benchmark(
        [run(facts, "with_skill", 1, passing(1, 1)), run(facts, "with_skill", 2, outcome=Outcome.GATED)], plan()
    )
    (item,) = found["items"]
    assert item["arms"]["with_skill"]["runs"] == 1
    assert item["arms"]["with_skill"]["rate"] == 1.0
    assert found["run_summary"]["with_skill"]["pass_rate"]["mean"] == 0.5


def test_a_model_without_a_price_is_named_and_costs_nobody_knows_are_not_0() -> None:
    unpriced = replace(run(1, "with_skill", 1, passing(1, 2)), tokens=Tokens(30, 10, 20))
    found = benchmark([unpriced], replace(plan(), executor_model="new-model"))
    assert any(note.startswith("Cost unknown for model new-model: 1 run ") for note in found["notes"])
    assert found["coverage"]["cost_usd"] is None
    priced = benchmark([replace(unpriced, cost_usd=0.1)], replace(plan(), executor_model="new-model"))
    assert not any("Cost unknown" in note for note in priced["notes"])


def test_provenance_names_judge_prompts_and_sandboxes_of_the_runs() -> None:
    judged = [
        replace(
            run(1, "with_skill", number, passing(1, 2).model_copy(update={"extra": {"judge": {"prompt_version": v}}})),
            sandbox=tier,
        )
        for number, (v, tier) in enumerate([("j2", "bubblewrap"), ("j1", "bubblewrap"), ("j2", None)], 1)
    ]
    provenance = benchmark(judged, plan())["metadata"]["provenance"]
    assert provenance["judge_prompt_versions"] == ["j1", "j2"]
    assert provenance["sandbox_tiers"] == ["bubblewrap"]


def test_provenance_keeps_what_it_is_given_and_the_version() -> None:
    batch = BatchPlan("pdf", "now", plan().arms, provenance={"skill_digest": "abc"})
    provenance = benchmark(two_arms("with_skill", "without_skill", 1), batch)["metadata"]["provenance"]
    assert provenance["skill_digest"] == "abc"
    assert provenance["simulated"] is False
    assert provenance["assay_version"]


def test_a_skill_that_was_not_used_is_said() -> None:
    records = [run(1, "with_skill", 1, passing(1, 2), skill_used=False), run(1, "without_skill", 1, passing(1, 2))]
    found = benchmark(records, plan())
    assert found["coverage"]["configurations"]["with_skill"]["skill_used"] == {"yes": 0, "no": 1, "unknown": 0}
    assert "with_skill: the skill was not used in 1 of 1 run." in found["notes"]


def test_costs_are_ratios_with_intervals() -> None:
    records = [
        run(case, arm, number, passing(1, 2), tokens=tokens + 10 * case, seconds=5.0, cost=0.01)
        for case in range(4)
        for arm, tokens in (("with_skill", 2000), ("without_skill", 1000))
        for number in (1, 2)
    ]
    found = benchmark(records, plan())
    assert found["statistics"]["ratios"]["tokens"]["ratio"] == pytest.approx(1.985, abs=0.01)
    assert found["statistics"]["ratios"]["time_seconds"]["ratio"] == 1.0
    assert found["coverage"]["cost_usd"] == pytest.approx(0.16)


def test_our_own_readers_find_nothing_wrong_with_what_we_write() -> None:
    facts = CaseFacts(1, "Booking", weights={"clarity": 1.0})
    arms = (("with_skill", 3), ("without_skill", 1))
    records = [run(facts, arm, 1, passing(n, 4, {"clarity": 4}), seconds=2.5, tokens=10) for arm, n in arms]
    aggregates = aggregate(records, plan())
    for kind, write in ((Kind.BENCHMARK, aggregates.write_benchmark), (Kind.FEEDBACK, aggregates.write_feedback)):
        out = io.BytesIO()
        write(out)
        reading = read(out.getvalue())
        assert reading.kind is kind
        assert reading.ok, reading.findings


def test_judge_errors_are_counted_by_their_reason_wherever_outcomes_are_shown() -> None:
    reasons = ("control", "control", "ids", None)
    failed = [
        replace(run(1, "with_skill", number, outcome=Outcome.JUDGE_ERROR), judge_failed=reason)
        for number, reason in enumerate(reasons, 1)
    ]

    found = aggregate([*failed, run(1, "without_skill", 1, passing(1, 1))], plan())

    assert found.coverage["judge_errors"] == {"control": 2, "ids": 1, "other": 1}
    arms: Any = found.coverage["configurations"]
    assert arms["without_skill"]["judge_errors"] == {}
    assert "4 judge_error (2 control, 1 ids, 1 other)" in benchmark_markdown(found)
    assert "with_skill: 2 judgements void, because the judge answered the control statements wrongly." in found.notes
