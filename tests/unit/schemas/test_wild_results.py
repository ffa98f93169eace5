"""Gradings, timings, benchmarks and their kin as other tools write them."""

import json
from typing import Any

import pytest

from schemas.benchmark import Benchmark
from schemas.dialects import Dialect, Kind, Reading, read, write
from schemas.findings import Level
from schemas.grading import Grading
from schemas.timing import Timing


def reading_of(value: Any) -> Reading:
    return read(json.dumps(value).encode())


def grading_of(value: Any) -> Grading:
    document = reading_of(value).document
    assert isinstance(document, Grading)
    return document


def codes_of(value: Any) -> list[tuple[str, str]]:
    return [(one.path, one.code) for one in reading_of(value).findings if one.level is not Level.NOTE]


GRADED = [{"text": "a", "passed": True, "evidence": "x"}, {"text": "b", "passed": False, "evidence": "y"}]


@pytest.mark.parametrize("key", ["expectations", "assertion_results", "assertions"])
def test_a_grading_without_a_summary_is_counted(key: str) -> None:
    summary = grading_of({key: GRADED}).summary

    assert summary is not None
    assert (summary.passed, summary.failed, summary.total, summary.pass_rate) == (1, 1, 2, 0.5)


def test_nothing_to_count_is_no_rate() -> None:
    summary = grading_of({"expectations": [], "eval_feedback": "", "summary": None, "pass_rate": None}).summary

    assert summary is not None and (summary.total, summary.pass_rate) == (0, None)


def test_counters_without_a_list_are_the_summary() -> None:
    summary = grading_of({"pass_rate": 0.75, "passed": 3, "total": 4}).summary

    assert summary is not None and (summary.passed, summary.failed, summary.total) == (3, 1, 4)


@pytest.mark.parametrize("name", ["passed", "passed_count", "pass_count"])
def test_counters_that_contradict_the_list_are_warned_about(name: str) -> None:
    assert codes_of({"expectations": GRADED, name: 2}) == [(name, "counts_differ")]


def test_other_words_for_the_parts_of_a_verdict_are_read() -> None:
    [one] = grading_of({"assertions": [{"expectation": "e", "met": True, "reason": "r"}]}).expectations or ()

    assert (one.text, one.passed, one.evidence) == ("e", True, "r")


NOTES: dict[str, tuple[Any, Any]] = {
    "a text": ("unsure", "unsure"),
    "an object": ({"uncertainties": ["u"], "needs_review": []}, ("u",)),
    "null": (None, None),
}


@pytest.mark.parametrize(("value", "seen"), NOTES.values(), ids=NOTES.keys())
def test_user_notes_come_in_three_shapes_and_go_as_they_came(value: Any, seen: Any) -> None:
    whole = {"expectations": [], "summary": {"passed": 0, "failed": 0, "total": 0}, "user_notes_summary": value}

    grading = grading_of(whole)

    notes = grading.user_notes
    assert (notes and (notes.text or notes.uncertainties)) == seen
    assert json.dumps(write(grading, Dialect.SKILL_CREATOR)) == json.dumps(whole)


FEEDBACK: dict[str, Any] = {
    "a text": "too easy",
    "a list of texts": ["too easy"],
    "a list of objects": [{"reason": "too easy"}],
    "an object with texts": {"suggestions": ["too easy"]},
    "an object": {"suggestions": [{"reason": "too easy"}], "overall": "fine"},
}


@pytest.mark.parametrize("value", FEEDBACK.values(), ids=FEEDBACK.keys())
def test_feedback_comes_in_many_shapes(value: Any) -> None:
    feedback = grading_of({"expectations": GRADED, "eval_feedback": value}).eval_feedback

    assert feedback is not None
    assert feedback.text == "too easy" or [one.reason for one in feedback.suggestions or ()] == ["too easy"]


def test_rubric_scores_may_be_a_list() -> None:
    value = {"rubric_scores": [{"dimension": "clarity", "score": 4, "weight": 2, "evidence": "e"}]}

    [score] = grading_of(value).rubric_scores or ()

    assert (score.name, score.score, score.extra) == ("clarity", 4, {"weight": 2})


def test_a_score_keeps_a_key_called_name() -> None:
    value = {"rubric_scores": {"clarity": {"name": "Clarity!", "score": 4}}}

    grading = grading_of(value)

    assert json.dumps(write(grading, Dialect.SKILL_EVALUATOR)) == json.dumps(value)


DURATIONS: dict[str, tuple[str, Any]] = {
    "duration_ms": ("duration_ms", 1500),
    "total_duration_ms": ("duration_ms", 1500),
    "durationMs": ("duration_ms", 1500),
    "elapsed_ms": ("duration_ms", 1500),
    "total_duration_seconds": ("total_duration_seconds", 1.5),
    "duration_seconds": ("total_duration_seconds", 1.5),
    "elapsed_seconds": ("total_duration_seconds", 1.5),
    "wall_time_seconds": ("total_duration_seconds", 1.5),
    "executor_duration_seconds": ("executor_duration_seconds", 1.5),
}


@pytest.mark.parametrize("spelling", DURATIONS)
def test_a_duration_is_read_in_every_spelling_that_names_its_unit(spelling: str) -> None:
    field, number = DURATIONS[spelling]

    reading = reading_of({"total_tokens": 7, spelling: number})

    assert isinstance(reading.document, Timing)
    assert getattr(reading.document, field) == number


def test_a_duration_without_a_unit_is_kept_but_not_guessed() -> None:
    timing = reading_of({"total_tokens": 7, "duration": 12}).document

    assert isinstance(timing, Timing)
    assert timing.extra == {"duration": 12} and timing.total_duration_seconds is None


def test_a_benchmark_without_runs_and_with_numbers_for_a_delta_is_read() -> None:
    spread = {"mean": 0.5, "stddev": 0.1}
    value = {"run_summary": {"with_skill": {"pass_rate": spread}, "delta": {"pass_rate": 0.2}}}

    benchmark = reading_of(value).document

    assert isinstance(benchmark, Benchmark) and benchmark.run_summary is not None
    assert list(benchmark.run_summary.configurations) == ["with_skill"]
    assert benchmark.run_summary.delta == {"pass_rate": 0.2}


def test_a_value_of_the_wrong_type_is_kept_and_written_back() -> None:
    value = {"total_tokens": "many", "duration_ms": 3}

    reading = reading_of(value)

    assert codes_of(value) == [("total_tokens", "wrong_type")]
    assert reading.ok and reading.document is not None
    assert json.dumps(write(reading.document, Dialect.SKILL_CREATOR)) == json.dumps(value)


CONTRADICTIONS: dict[str, tuple[Any, list[tuple[str, str]]]] = {
    "counts": (
        {"expectations": GRADED, "summary": {"passed": 1, "failed": 0, "total": 2, "pass_rate": 0.5}},
        [("summary", "counts_differ")],
    ),
    "rate": (
        {"expectations": GRADED, "summary": {"passed": 1, "failed": 1, "total": 2, "pass_rate": 0.6}},
        [("summary", "rate_differs")],
    ),
    "rate above 1": (
        {"expectations": [], "summary": {"pass_rate": 50}},
        [("summary", "out_of_range")],
    ),
    "passed over the list": (
        {"expectations": GRADED, "summary": {"passed": 2, "total": 2}},
        [("summary", "list_differs")],
    ),
    "normalized": (
        {"rubric_summary": {"weighted_mean": 4.0, "normalized": 0.9}},
        [("rubric_summary", "rate_differs")],
    ),
    "mean outside the scores": (
        {"rubric_scores": {"a": {"score": 3}}, "rubric_summary": {"weighted_mean": 4.0}},
        [("rubric_summary", "mean_differs")],
    ),
    "score 6": (
        {"rubric_scores": {"a": {"score": 6}}, "rubric_summary": {}},
        [("rubric_scores.a", "out_of_range")],
    ),
    "passed against the score": (
        {"case_id": "a", "results": [{"criterion": "c", "score": 2, "passed": True}]},
        [("results[0]", "passed_differs")],
    ),
    "overall_score": (
        {"case_id": "a", "overall_score": 3.0, "results": [{"criterion": "c", "score": 4, "passed": True}]},
        [("overall_score", "mean_differs")],
    ),
    "fail without a failure": (
        {"case_id": "a", "overall": "fail", "results": [{"criterion": "c", "score": 4, "passed": True}]},
        [("overall", "overall_differs")],
    ),
    "the gate": (
        {
            "expectations": [{"text": "t", "type": "no_errors", "passed": False, "evidence": "", "critical": True}],
            "gate_passed": True,
        },
        [("gate_passed", "gate_differs")],
    ),
    "tool calls": ({"tool_calls": {"Read": 2}, "total_tool_calls": 3}, [("total_tool_calls", "sum_differs")]),
    "milliseconds": ({"duration_ms": 9000, "total_duration_seconds": 3}, [("", "time_differs")]),
    "consistency": (
        {"run_summary": {"a": {"overall_efficiency": {"mean": 0.5, "stddev": 0.25}, "consistency": 0.9}}},
        [("run_summary.a.consistency", "rate_differs")],
    ),
    "delta": (
        {
            "run_summary": {
                "a": {"pass_rate": {"mean": 0.5}},
                "b": {"pass_rate": {"mean": 0.25}},
                "delta": {"pass_rate": "+0.75"},
            }
        },
        [("run_summary.delta.pass_rate", "delta_differs")],
    ),
    "the sum of two scores": (
        {"winner": "A", "rubric": {"A": {"content_score": 2.0, "structure_score": 2.0, "overall_score": 9.0}}},
        [("rubric.A.overall_score", "sum_differs")],
    ),
    "an unknown winner": ({"winner": "C", "reasoning": "r"}, [("winner", "unknown_word")]),
    "a best version nobody has": (
        {"current_best": "v9", "iterations": [{"version": "v0", "is_current_best": True}]},
        [("current_best", "unknown_version"), ("current_best", "best_differs")],
    ),
}


@pytest.mark.parametrize(("value", "found"), CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_numbers_that_cannot_all_be_right_are_warnings(value: Any, found: list[tuple[str, str]]) -> None:
    assert codes_of(value) == found
    assert reading_of(value).ok


UNKNOWN: list[Any] = [
    {},
    [],
    {"name": "package", "version": "1.0.0"},
    "text",
    3,
    None,
    [1, 2],
    {"tests": 12, "passed": 3},
]


@pytest.mark.parametrize("value", UNKNOWN, ids=repr)
def test_what_is_none_of_ours_is_unknown(value: Any) -> None:
    reading = reading_of(value)

    assert (reading.kind, reading.dialect, reading.ok) == (Kind.UNKNOWN, None, False)
