"""Numbers in a file that cannot all be right: warnings, because the file is kept as it is."""

from collections.abc import Callable, Sequence
from typing import Any

from schemas.base import Node, Number
from schemas.benchmark import Benchmark, BenchmarkRun, ConfigurationSummary, RunResult, RunSummary
from schemas.comparison import Comparison, OutputRubric
from schemas.dialects.place import Place
from schemas.grading import CriterionResult, GradedExpectation, Grading
from schemas.history import History
from schemas.metrics import Metrics
from schemas.structural import CheckedExpectation, Structural, Summary
from schemas.timing import Timing

# Half a unit of the second decimal, which is how most tools round; a little more for binary fractions.
_RATE = 0.005 + 1e-9
_TENTH = 0.05 + 1e-9


def look_for_contradictions(document: Node, place: Place) -> None:
    """Warn about numbers of one document that contradict each other."""
    look = _LOOKS.get(type(document))
    if look is not None:
        look(document, place)


def _differ(given: Number | None, computed: float | None, within: float) -> bool:
    return given is not None and computed is not None and abs(given - computed) > within


def _mean(numbers: Sequence[Number]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None


def _counts(one: Summary | RunResult, place: Place) -> None:
    """passed, failed, total and pass_rate among themselves."""
    if one.passed is not None and one.failed is not None and _differ(one.total, one.passed + one.failed, 0):
        place.warn("counts_differ", f"passed {one.passed} and failed {one.failed} do not make a total of {one.total}")
    _rate(one.pass_rate, one.passed, one.total, place)


def _rate(rate: Number | None, passed: int | None, total: int | None, place: Place) -> None:
    if passed is not None and total and _differ(rate, passed / total, _RATE):
        place.warn("rate_differs", f"pass_rate {rate} is not {passed}/{total}, which is {passed / total:.4f}")
    if rate is not None and not 0 <= rate <= 1:
        place.warn("out_of_range", f"pass_rate {rate} is not between 0 and 1")


def _listed(
    passed: int | None,
    total: int | None,
    listed: Sequence[GradedExpectation | CheckedExpectation] | None,
    place: Place,
) -> None:
    """Counts over a list that is there too."""
    if listed is None:
        return
    if _differ(total, len(listed), 0):
        place.warn("list_differs", f"counts {total} expectations, but {len(listed)} are listed")
    elif _differ(passed, sum(one.passed is True for one in listed), 0):
        place.warn(
            "list_differs", f"counts {passed} passed, but {sum(one.passed is True for one in listed)} listed passed"
        )


def _grading(grading: Grading, place: Place) -> None:
    summary = grading.summary
    if summary is not None and "summary" in grading.keys:
        _counts(summary, place.at("summary"))
        _listed(summary.passed, summary.total, grading.expectations, place.at("summary"))
    if summary is not None:
        _flat_counters(grading, summary, place)
    if grading.rubric_summary is not None:
        _rubric(grading, place)
    if grading.execution_metrics is not None:
        _metrics(grading.execution_metrics, place.at("execution_metrics"))
    if grading.timing is not None:
        _timing(grading.timing, place.at("timing"))
    if grading.results is not None:
        _criteria(grading, grading.results, place)


def _flat_counters(grading: Grading, summary: Summary, place: Place) -> None:
    """Counters beside the summary."""
    same = {
        "passed": "passed",
        "passed_count": "passed",
        "pass_count": "passed",
        "total": "total",
        "total_count": "total",
    }
    for name, field in same.items():
        given = grading.extra.get(name)
        if isinstance(given, int) and _differ(given, getattr(summary, field), 0):
            place.at(name).warn(
                "counts_differ", f"{name} is {given}, but the rest of the file says {getattr(summary, field)}"
            )
    rate = grading.extra.get("pass_rate")
    if isinstance(rate, int | float) and _differ(rate, summary.pass_rate, _RATE):
        place.at("pass_rate").warn(
            "rate_differs", f"pass_rate is {rate}, but the rest of the file says {summary.pass_rate}"
        )


def _rubric(grading: Grading, place: Place) -> None:
    summary = grading.rubric_summary
    assert summary is not None
    there = place.at("rubric_summary")
    if summary.weighted_mean is not None and _differ(summary.normalized, summary.weighted_mean / 5, _RATE):
        there.warn("rate_differs", f"normalized {summary.normalized} is not weighted_mean {summary.weighted_mean} / 5")
    scores = [score.score for score in grading.rubric_scores or () if score.score is not None]
    mean = summary.weighted_mean
    if mean is not None and scores and not min(scores) - _RATE <= mean <= max(scores) + _RATE:
        there.warn("mean_differs", f"weighted_mean {mean} lies outside the scores {min(scores)} to {max(scores)}")
    for score in grading.rubric_scores or ():
        _in_scale(score.score, place.at("rubric_scores").at(score.name))


def _in_scale(score: Number | None, place: Place) -> None:
    if score is not None and not 1 <= score <= 5:
        place.warn("out_of_range", f"score {score} is not between 1 and 5")


def _criteria(grading: Grading, results: Sequence[CriterionResult], place: Place) -> None:
    for index, result in enumerate(results):
        there = place.at("results").at(index)
        _in_scale(result.score, there)
        if result.score is not None and result.passed is not None and result.passed != (result.score >= 3):
            there.warn("passed_differs", f"passed is {result.passed}, but a score of {result.score} says otherwise")
    mean = _mean([result.score for result in results if result.score is not None])
    if _differ(grading.overall_score, mean, _TENTH):
        place.at("overall_score").warn(
            "mean_differs", f"{grading.overall_score} is not the mean of the scores, {mean:.2f}"
        )
    if grading.overall == "fail" and results and all(result.passed for result in results):
        place.at("overall").warn("overall_differs", "fail, although every criterion passed")


def _structural(structural: Structural, place: Place) -> None:
    if structural.summary is not None:
        _counts(structural.summary, place.at("summary"))
        summary = structural.summary
        _listed(summary.passed, summary.total, structural.expectations, place.at("summary"))
    failed = any(one.critical and one.passed is False for one in structural.expectations)
    if structural.gate_passed and failed:
        place.at("gate_passed").warn("gate_differs", "true, although a critical expectation failed")


def _metrics(metrics: Metrics, place: Place) -> None:
    calls = metrics.tool_calls
    if calls and _differ(metrics.total_tool_calls, sum(calls.values()), 0):
        there = place.at("total_tool_calls")
        there.warn("sum_differs", f"{metrics.total_tool_calls} is not the sum of tool_calls, {sum(calls.values())}")


def _timing(timing: Timing, place: Place) -> None:
    total = timing.total_duration_seconds
    measured = None if timing.duration_ms is None else timing.duration_ms / 1000
    # Some tools round to whole seconds.
    if _differ(total, measured, 0.5 + _TENTH):
        place.warn("time_differs", f"total_duration_seconds {total} is not duration_ms {timing.duration_ms}")
    executor = timing.executor_duration_seconds
    if total is not None and executor is not None and executor > total + _TENTH:
        place.warn(
            "time_differs", f"executor_duration_seconds {executor} is longer than total_duration_seconds {total}"
        )


def _benchmark(benchmark: Benchmark, place: Place) -> None:
    runs = benchmark.runs or ()
    for index, run in enumerate(runs):
        _run(run, place.at("runs").at(index))
    if benchmark.runs is not None:
        _coverage(benchmark, runs, place)
    if benchmark.run_summary is not None:
        _run_summary(benchmark.run_summary, runs, place.at("run_summary"))
    elif not runs:
        place.warn("nothing_usable", "has neither runs nor a run_summary that we know how to read; it is kept as it is")


def _run(run: BenchmarkRun, place: Place) -> None:
    if run.result is not None:
        _counts(run.result, place.at("result"))
        _listed(run.result.passed, run.result.total, run.expectations or None, place.at("result"))


def _coverage(benchmark: Benchmark, runs: Sequence[BenchmarkRun], place: Place) -> None:
    """What the metadata says was run, and what is there."""
    metadata = benchmark.metadata
    if metadata is None:
        return
    there = place.at("metadata")
    present = {run.eval_id for run in runs} | {run.eval_name for run in runs}
    missing = [case for case in metadata.evals_run or () if case not in present]
    if missing:
        there.at("evals_run").warn("runs_missing", f"names {_some(missing)}, of which there is no run")
    planned = metadata.runs_per_configuration
    most = max((run.run_number or 0 for run in runs), default=0)
    if planned is not None and runs and most != planned:
        there.at("runs_per_configuration").warn("runs_missing", f"says {planned}, but the last run is number {most}")


def _some(items: Sequence[object]) -> str:
    names = ", ".join(map(repr, items[:3]))
    return f"{names} and {len(items) - 3} more" if len(items) > 3 else names


def _run_summary(summary: RunSummary, runs: Sequence[BenchmarkRun], place: Place) -> None:
    for name, configuration in summary.configurations.items():
        rates = [run.result.pass_rate for run in runs if run.configuration == name and run.result is not None]
        _configuration(configuration, [rate for rate in rates if rate is not None], bool(runs), place.at(name))
    arms = list(summary.configurations.values())
    if summary.delta and len(arms) == 2 and arms[0].pass_rate and arms[1].pass_rate:
        _delta(summary.delta.get("pass_rate"), arms[0].pass_rate.mean, arms[1].pass_rate.mean, place)


def _configuration(one: ConfigurationSummary, rates: Sequence[Number], has_runs: bool, place: Place) -> None:
    if has_runs and not rates and one.pass_rate is not None:
        place.warn("runs_missing", "is summed up, but no run of it has a pass_rate")
    if one.pass_rate is not None and _differ(one.pass_rate.mean, _mean(rates), _RATE):
        place.at("pass_rate").warn(
            "mean_differs", f"mean {one.pass_rate.mean} is not that of the runs, {_mean(rates):.4f}"
        )
    overall = one.overall_efficiency
    if overall is not None and overall.mean and overall.stddev is not None:
        consistency = max(0.0, 1 - overall.stddev / overall.mean)
        if _differ(one.consistency, consistency, _RATE):
            place.at("consistency").warn("rate_differs", f"{one.consistency} is not 1 - stddev/mean, {consistency:.4f}")


def _delta(delta: str | Number | None, first: Number | None, second: Number | None, place: Place) -> None:
    """Either sign is fine: which arm is the treatment is not in the file."""
    try:
        given = float(delta) if delta is not None else None
    except ValueError:
        return
    if (
        given is not None
        and first is not None
        and second is not None
        and _differ(abs(given), abs(first - second), 0.01)
    ):
        place.at("delta").at("pass_rate").warn(
            "delta_differs", f"{delta} is not the difference of {first} and {second}"
        )


def _comparison(comparison: Comparison, place: Place) -> None:
    for label, rubric in (comparison.rubric or {}).items():
        _output_rubric(rubric, place.at("rubric").at(label))
    for label, results in (comparison.expectation_results or {}).items():
        there = place.at("expectation_results").at(label)
        _rate(results.pass_rate, results.passed, results.total, there)
        _listed(results.passed, results.total, results.details, there)
    if comparison.winner is not None and comparison.winner not in ("A", "B", "TIE"):
        place.at("winner").warn("unknown_word", f"{comparison.winner!r} is none of A, B and TIE")


def _output_rubric(rubric: OutputRubric, place: Place) -> None:
    groups = (
        ("content_score", rubric.content_score, rubric.content),
        ("structure_score", rubric.structure_score, rubric.structure),
    )
    for name, score, criteria in groups:
        if criteria and _differ(score, _mean(list(criteria.values())), _TENTH):
            place.at(name).warn("mean_differs", f"{score} is not the mean of its criteria")
    content, structure = rubric.content_score, rubric.structure_score
    if content is not None and structure is not None and _differ(rubric.overall_score, content + structure, _TENTH):
        place.at("overall_score").warn("sum_differs", f"{rubric.overall_score} is not {content} + {structure}")


def _history(history: History, place: Place) -> None:
    versions = history.versions or ()
    names = [version.version for version in versions]
    for name, current in (("current_best", history.current_best), ("current_version", history.current_version)):
        if current is not None and current not in names:
            place.at(name).warn("unknown_version", f"{current!r} is none of the versions")
    best = [version.version for version in versions if version.is_current_best]
    if len(best) > 1 or (best and history.current_best is not None and best != [history.current_best]):
        place.at("current_best").warn("best_differs", f"{history.current_best!r}, but marked as best: {_some(best)}")


_LOOKS: dict[type[Node], Callable[[Any, Place], None]] = {
    Grading: _grading,
    Structural: _structural,
    Metrics: _metrics,
    Timing: _timing,
    Benchmark: _benchmark,
    Comparison: _comparison,
    History: _history,
}
