"""Parts of gradings that the dialects share, and the files whose content a grading copies: metrics and timing."""

from typing import Any

from pydantic import JsonValue

from schemas.base import Node
from schemas.dialects import wild
from schemas.dialects.codecs import FLAG, ID, INTEGER, NUMBER, TEXT, TEXTS, Codec, JsonSchema, ListOf, MapOf, mistyped
from schemas.dialects.place import Place
from schemas.dialects.shape import Key, Shape
from schemas.findings import Level
from schemas.grading import Claim, EvalFeedback, GradedExpectation, Suggestion, UserNotes
from schemas.metrics import Metrics
from schemas.structural import Summary
from schemas.timing import Timing

SUMMARY = Shape(
    Summary,
    Key("passed", INTEGER),
    Key("failed", INTEGER),
    Key("total", INTEGER),
    Key("pass_rate", NUMBER, always=True, about="passed / total, 0-1; null when there is nothing to check"),
)
GRADED = Shape(
    GradedExpectation,
    Key("id", ID),
    Key("text", TEXT, needed=True, aliases=("expectation", "assertion", "description", "statement", "name")),
    Key("passed", FLAG, aliases=wild.GRADED_PASSED),
    Key("evidence", TEXT, aliases=wild.GRADED_EVIDENCE),
)
METRICS = Shape(
    Metrics,
    Key("tool_calls", MapOf(INTEGER), about="count per tool"),
    Key("total_tool_calls", INTEGER),
    Key("total_steps", INTEGER),
    Key("files_created", TEXTS),
    Key("errors_encountered", INTEGER),
    Key("output_chars", INTEGER),
    Key("transcript_chars", INTEGER),
    about="what the executor counted",
)
TIMING = Shape(
    Timing,
    Key("total_tokens", INTEGER, aliases=wild.TOKENS),
    Key("duration_ms", NUMBER, aliases=wild.MILLISECONDS),
    Key("total_duration_seconds", NUMBER, aliases=wild.SECONDS),
    Key("executor_start", TEXT),
    Key("executor_end", TEXT),
    Key("executor_duration_seconds", NUMBER),
    Key("grader_start", TEXT),
    Key("grader_end", TEXT),
    Key("grader_duration_seconds", NUMBER),
    about="wall clock of one run",
)
CLAIM = Shape(
    Claim,
    Key("claim", TEXT, needed=True),
    Key("type", TEXT, about="factual, process or quality"),
    Key("verified", FLAG),
    Key("evidence", TEXT),
)


class TextOr(Codec):
    """One text in some dialects, an object in others; each is read in both, and written as it was."""

    def __init__(self, shape: Shape, own: str) -> None:
        self._shape = shape
        self._own = own

    def read(self, value: JsonValue, place: Place) -> Node:
        if isinstance(value, str):
            self._mention("text", place)
            return self._shape.model(text=value)  # type: ignore[call-arg]
        if not isinstance(value, dict):
            raise mistyped(value, "an object or a text", place)
        self._mention("object", place)
        node: Node = self._shape.read(value, place)
        return node

    def _mention(self, found: str, place: Place) -> None:
        if found != self._own:
            place.note("variant", f"is one {found} here")

    def write(self, value: Any) -> JsonValue:
        return value.text if value.text is not None and not value.keys else self._shape.write(value)

    def schema(self) -> JsonSchema:
        return TEXT.schema() if self._own == "text" else self._shape.schema()


class SuggestionCodec(Codec):
    """A reason and what it is about; a bare text is its reason."""

    def read(self, value: JsonValue, place: Place) -> Suggestion:
        if isinstance(value, str):
            place.note("reshaped", "a text; read as the reason")
            return Suggestion(reason=value)
        suggestion: Suggestion = _SUGGESTION.read(value, place)
        return suggestion

    def write(self, value: Suggestion) -> JsonValue:
        return _SUGGESTION.write(value)

    def schema(self) -> JsonSchema:
        return _SUGGESTION.schema()


_SUGGESTION = Shape(
    Suggestion,
    Key("assertion", TEXT, about="the expectation it is about; absent when one is missing"),
    Key("reason", TEXT, needed=True, aliases=("suggestion",)),
)
_FEEDBACK = Shape(
    EvalFeedback,
    Key("suggestions", ListOf(SuggestionCodec())),
    Key("overall", TEXT),
)
_NOTES = Shape(
    UserNotes,
    Key("uncertainties", TEXTS),
    Key("needs_review", TEXTS),
    Key("workarounds", TEXTS),
)


class FeedbackCodec(TextOr):
    """Remarks on the suite; some graders write the suggestions alone."""

    def read(self, value: JsonValue, place: Place) -> Node:
        if isinstance(value, list):
            place.note("reshaped", "a list; read as its suggestions")
            return EvalFeedback(suggestions=ListOf(SuggestionCodec()).read(value, place))
        return super().read(value, place)


def notes_key(own: str) -> Key:
    """What the executor flagged: an object of three lists, or one text."""
    return Key("user_notes_summary", TextOr(_NOTES, own), "user_notes", about="issues flagged by the executor")


def feedback_key(own: str) -> Key:
    """The judge's remarks on the suite: an object with suggestions, or one text."""
    return Key("eval_feedback", FeedbackCodec(_FEEDBACK, own), about="how the suite could be better")


EXPECTATIONS_KEY = Key("expectations", ListOf(GRADED), on_bad=Level.ERROR, aliases=wild.GRADED_LIST)
SUMMARY_KEY = Key("summary", SUMMARY)
METRICS_KEY = Key("execution_metrics", METRICS, about="copied from metrics.json")
TIMING_KEY = Key("timing", TIMING, about="copied from timing.json")
CLAIMS_KEY = Key("claims", ListOf(CLAIM), about="claims of the answer, verified or not")


class GradingShape(Shape):
    """A grading: a missing summary is counted again."""

    def settle(self, fields: dict[str, Any], value: dict[str, JsonValue], place: Place) -> None:
        if fields.get("summary") is not None or "summary" in fields["extra"]:
            return
        counted = _counted(fields.get("expectations")) or _flat_counters(value)
        if counted is not None:
            fields["summary"] = counted
            place.note("recomputed", "has no summary; it was counted from the rest of the file")


def _counted(expectations: tuple[GradedExpectation, ...] | None) -> Summary | None:
    if expectations is None:
        return None
    passed = sum(one.passed is True for one in expectations)
    failed = sum(one.passed is False for one in expectations)
    return summary_of(passed, failed, len(expectations))


def _flat_counters(value: dict[str, JsonValue]) -> Summary | None:
    """Counters beside the expectations instead of inside a summary."""
    passed = _first_count(value, "passed", "passed_count", "pass_count")
    total = _first_count(value, "total", "total_count")
    if passed is None or total is None:
        return None
    return summary_of(passed, total - passed, total)


def _first_count(value: dict[str, JsonValue], *names: str) -> int | None:
    counts = [count for name in names if isinstance(count := value.get(name), int) and not isinstance(count, bool)]
    return counts[0] if counts else None


def summary_of(passed: int, failed: int, total: int) -> Summary:
    """Counts as we write them; no rate over nothing."""
    return Summary(passed=passed, failed=failed, total=total, pass_rate=round(passed / total, 4) if total > 0 else None)
