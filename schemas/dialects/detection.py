"""Tells kind and dialect of a document from its content; the file's name has no say."""

from collections.abc import Callable
from typing import NamedTuple

from pydantic import JsonValue

from schemas.dialects import wild
from schemas.kinds import Dialect, Kind


class Detection(NamedTuple):
    """What a document is, and whose reader reads it; None where we read no such document."""

    kind: Kind
    dialect: Dialect | None


_PROMPTS = ("prompt", *wild.PROMPT)
_ASKS = ("expectations", "expected_output", "structural_expectations", "quality_rubric", *wild.CASE_EXPECTATIONS)
_TRIGGERS = ("should_trigger", "should_activate", "shouldTrigger")
_LISTS = ("evals", "cases", *wild.SUITE_CASES)
_RUBRIC_STATS = ("rubric_normalized", "overall_efficiency", "rubric_dimensions", "consistency")
_TIMES = (
    "duration_ms",
    "total_duration_seconds",
    "executor_duration_seconds",
    "grader_duration_seconds",
    *wild.SECONDS,
    *wild.MILLISECONDS,
)
_COUNTS = ("tool_calls", "total_tool_calls", "total_steps", "files_created", "errors_encountered")
_GRADED_LISTS = ("expectations", *wild.GRADED_LIST)


def detect(value: JsonValue) -> Detection:
    """Kind and dialect of a parsed document; of several possible kinds the first below."""
    if isinstance(value, list):
        return _detect_list(value)
    if isinstance(value, dict):
        for look in _LOOKS:
            found = look(value)
            if found is not None:
                return found
    return Detection(Kind.UNKNOWN, None)


def _objects(value: JsonValue) -> list[dict[str, JsonValue]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _has(value: dict[str, JsonValue], *names: str) -> bool:
    return any(name in value for name in names)


def _detect_list(value: list[JsonValue]) -> Detection:
    items = _objects(value)
    if items and all(_is_trigger(item) for item in items):
        return Detection(Kind.TRIGGER, None)
    if any(_is_case(item) for item in items):
        return Detection(Kind.EVALS, _suite_dialect({}, items))
    return Detection(Kind.UNKNOWN, None)


def _is_trigger(item: dict[str, JsonValue]) -> bool:
    """A query and whether, or which, skill it should trigger; nothing about what comes out."""
    if _has(item, *_TRIGGERS):
        return True
    return "query" in item and isinstance(item.get("expected"), str) and not _has(item, "prompt", *_ASKS)


def _is_case(item: dict[str, JsonValue]) -> bool:
    return _has(item, *_PROMPTS) or ("id" in item and _has(item, *_ASKS))


def _suite_dialect(suite: dict[str, JsonValue], cases: list[dict[str, JsonValue]]) -> Dialect:
    if "cases" in suite:
        return Dialect.CASES
    # `rubric` is skill_evaluator's own alias; as a text it is somebody's remark.
    rich = any(_has(case, "structural_expectations", "quality_rubric") for case in cases)
    rich = rich or any(isinstance(case.get("rubric"), dict | list) for case in cases)
    return Dialect.SKILL_EVALUATOR if rich or "eval_config" in suite else Dialect.SKILL_CREATOR


def _suite(value: dict[str, JsonValue]) -> Detection | None:
    # The two dialects' own words count whatever they hold, so that a wrong value is found there and named.
    name = next((name for name in _LISTS if name in value and _may_hold_cases(name, value[name])), None)
    if name is None or _has(value, "run_summary", "configurations"):
        return None
    cases = _objects(value[name])
    if cases and all(_is_trigger(case) for case in cases):
        return Detection(Kind.TRIGGER, None)
    if cases and not any(_is_case(case) or _has(case, "id", "name") for case in cases):
        return None
    return Detection(Kind.EVALS, _suite_dialect(value, cases))


def _may_hold_cases(name: str, value: JsonValue) -> bool:
    return name == "evals" or (isinstance(value, list) and (name == "cases" or bool(value)))


def _trigger(value: dict[str, JsonValue]) -> Detection | None:
    lists = [item for name, item in value.items() if name in ("queries", "triggers", *_TRIGGERS)]
    whole = any(isinstance(item, list) for item in lists)
    return Detection(Kind.TRIGGER, None) if whole or _is_trigger(value) else None


def _structural(value: dict[str, JsonValue]) -> Detection | None:
    items = _objects(value.get("expectations"))
    checked = bool(items) and all(_has(item, "passed") and _has(item, "type") for item in items)
    if "gate_passed" in value or (checked and any("critical" in item for item in items)):
        return Detection(Kind.STRUCTURAL, Dialect.SKILL_EVALUATOR)
    return None


def _criteria_grading(value: dict[str, JsonValue]) -> Detection | None:
    scored = any("criterion" in item for item in _objects(value.get("results")))
    known = scored or ("case_id" in value and _has(value, "overall_score", "required_score", "convention_compliance"))
    return Detection(Kind.GRADING, Dialect.CASES) if known else None


def _benchmark(value: dict[str, JsonValue]) -> Detection | None:
    runs = "runs" in value and "metadata" in value
    arms = [name for name, item in value.items() if name.endswith(("with_skill", "without_skill")) and _is_arm(item)]
    listed = any(_objects(value.get(name)) for name in ("configurations", "configs")) and "delta" in value
    if not (runs or listed or arms or _has(value, "run_summary", "benchmark_schema") or _has_scenarios(value)):
        return None
    summary = value.get("run_summary")
    stats = [item for item in summary.values() if isinstance(item, dict)] if isinstance(summary, dict) else []
    rich = any(_has(item, *_RUBRIC_STATS) for item in stats)
    return Detection(Kind.BENCHMARK, Dialect.SKILL_EVALUATOR if rich else Dialect.SKILL_CREATOR)


def _is_arm(item: JsonValue) -> bool:
    return isinstance(item, dict) and _has(item, "evals", "runs", "pass_rate", "overall_pass_rate", "mean_pass_rate")


def _has_scenarios(value: dict[str, JsonValue]) -> bool:
    """Results by scenario, each with its arms."""
    scenarios = value.get("scenarios")
    items = list(scenarios.values()) if isinstance(scenarios, dict) else scenarios
    return any(_has(item, "with_skill", "without_skill") for item in _objects(items))


def _comparison(value: dict[str, JsonValue]) -> Detection | None:
    if "winner" not in value or not _has(value, "rubric", "scores", "output_quality", "reasoning"):
        return None
    cases = _has(value, "scores", "eval_prompt")
    return Detection(Kind.COMPARISON, Dialect.CASES if cases else Dialect.SKILL_CREATOR)


def _analysis(value: dict[str, JsonValue]) -> Detection | None:
    if _has(value, "comparison_summary", "winner_strengths", "loser_weaknesses", "improvement_suggestions"):
        return Detection(Kind.ANALYSIS, Dialect.SKILL_CREATOR)
    if _has(value, "winner_version", "loser_version") and _has(value, "strengths", "weaknesses", "suggestions"):
        return Detection(Kind.ANALYSIS, Dialect.CASES)
    return None


def _feedback(value: dict[str, JsonValue]) -> Detection | None:
    counted = any("frequency" in item for item in _objects(value.get("suggestions")))
    known = counted or (isinstance(value.get("suggestions"), list) and "total_runs" in value)
    return Detection(Kind.FEEDBACK, Dialect.SKILL_EVALUATOR) if known else None


def _history(value: dict[str, JsonValue]) -> Detection | None:
    versions = any("version" in item for item in _objects(value.get("versions"))) or "current_version" in value
    if versions and isinstance(value.get("versions"), list):
        return Detection(Kind.HISTORY, Dialect.CASES)
    if _objects(value.get("iterations")) or "current_best" in value:
        return Detection(Kind.HISTORY, Dialect.SKILL_CREATOR)
    return None


def _eval_metadata(value: dict[str, JsonValue]) -> Detection | None:
    known = "prompt" in value and _has(value, "eval_id", "eval_name") and "summary" not in value
    return Detection(Kind.EVAL_METADATA, Dialect.SKILL_CREATOR) if known else None


def _grading(value: dict[str, JsonValue]) -> Detection | None:
    verdict = ("passed", *wild.GRADED_PASSED)
    graded = any(_has(item, *verdict) for name in _GRADED_LISTS for item in _objects(value.get(name)))
    rubric = _has(value, "rubric_scores", "rubric_summary")
    summed = isinstance(value.get("summary"), dict) and _has(value, *_GRADED_LISTS)
    flat = "pass_rate" in value and _has(value, "passed", "pass_count", "total", *_GRADED_LISTS)
    if not (graded or rubric or summed or flat):
        return None
    return Detection(Kind.GRADING, Dialect.SKILL_EVALUATOR if rubric else Dialect.SKILL_CREATOR)


def _counted_or_timed(value: dict[str, JsonValue]) -> Detection | None:
    if _has(value, *_COUNTS):
        return Detection(Kind.METRICS, Dialect.SKILL_CREATOR)
    if _has(value, *_TIMES) or ("total_tokens" in value and not _has(value, *_PROMPTS)):
        return Detection(Kind.TIMING, Dialect.SKILL_CREATOR)
    return None


def _one_case(value: dict[str, JsonValue]) -> Detection | None:
    if _has(value, *_PROMPTS) and _has(value, "id", "name", "files", *_ASKS):
        return Detection(Kind.EVALS, _suite_dialect({}, [value]))
    return None


_LOOKS: tuple[Callable[[dict[str, JsonValue]], Detection | None], ...] = (
    _trigger,
    _suite,
    _structural,
    _criteria_grading,
    _benchmark,
    _comparison,
    _analysis,
    _feedback,
    _history,
    _eval_metadata,
    _grading,
    _one_case,
    _counted_or_timed,
)
