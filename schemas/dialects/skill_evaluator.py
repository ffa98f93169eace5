"""The skill_evaluator dialect: structural expectations decided by code, rubrics scored by a judge."""

from typing import Any

from pydantic import JsonValue

from schemas.dialects import skill_creator
from schemas.dialects.benchmarks import RUBRIC_BENCHMARK
from schemas.dialects.codecs import (
    FLAG,
    INTEGER,
    NUMBER,
    TEXT,
    AtLeast,
    Codec,
    JsonSchema,
    ListOf,
    MapOf,
    mistyped,
    read_all,
)
from schemas.dialects.gradings import SUMMARY_KEY
from schemas.dialects.place import Place
from schemas.dialects.shape import Key, Shape
from schemas.dialects.structural_expectations import StructuralList, StructuralShape
from schemas.feedback import FeedbackAggregate, FeedbackSuggestion
from schemas.findings import Level
from schemas.grading import DimensionScore, RubricSummary
from schemas.kinds import Kind
from schemas.structural import CheckedExpectation, Structural
from schemas.suite import Dimension, EvalConfig, Rubric, StructuralExpectation

STRUCTURAL_EXPECTATION = StructuralShape(
    StructuralExpectation,
    Key("id", TEXT, needed=True, on_bad=Level.ERROR, about="unique in the case: S1, S2, …"),
    Key("type", TEXT, needed=True, on_bad=Level.ERROR),
    Key("description", TEXT, aliases=("text", "name"), about="what this checks, shown in reports"),
    Key("critical", FLAG, about="whether failing it fails the structural gate"),
    about="one thing decided by code",
)
_DIMENSION = Shape(
    Dimension,
    Key("id", TEXT, about="Q1, Q2, …"),
    Key("name", TEXT, needed=True, on_bad=Level.ERROR, about="machine-readable, used in benchmarks"),
    Key("description", TEXT),
    Key("weight", NUMBER, on_bad=Level.ERROR, about="relative weight; 1 when absent"),
    Key("scoring", MapOf(TEXT), aliases=("anchors",), about="anchors for the scores 1, 3 and 5"),
)


class RubricShape(Shape):
    """A rubric; some suites write the list of its dimensions alone."""

    def read(self, value: JsonValue, place: Place) -> Any:
        if isinstance(value, list):
            place.note("reshaped", "a list; read as the dimensions of a rubric")
            return Rubric(dimensions=ListOf(_DIMENSION).read(value, place))
        return super().read(value, place)


_RUBRIC = RubricShape(Rubric, Key("dimensions", ListOf(_DIMENSION), needed=True, on_bad=Level.ERROR))

CASE = skill_creator.CASE.with_keys(
    Key(
        "structural_expectations",
        StructuralList(STRUCTURAL_EXPECTATION),
        "structural",
        on_bad=Level.ERROR,
        about="things decided by code",
    ),
    Key("quality_rubric", _RUBRIC, "rubric", on_bad=Level.ERROR, aliases=("rubric",), about="what the judge scores"),
)
EVAL_CONFIG = Shape(
    EvalConfig,
    Key("runs_per_eval", AtLeast(1), on_bad=Level.ERROR, about="how often each case is run; 3 when absent"),
    Key("structural_gate", FLAG, on_bad=Level.ERROR, about="skip the judge when a critical check fails"),
    Key("judge_model", TEXT, on_bad=Level.ERROR, about="should differ from the executor's model"),
    Key("baseline_comparison", FLAG, on_bad=Level.ERROR, about="also run without the skill"),
)
SUITE = skill_creator.SUITE.with_keys(
    Key("eval_config", EVAL_CONFIG, "config", on_bad=Level.ERROR, about="what the suite asks of a batch"),
    Key(
        "evals",
        ListOf(CASE),
        "cases",
        needed=True,
        on_bad=Level.ERROR,
        aliases=skill_creator.SUITE.key("evals").aliases,
        about="the cases",
    ),
)
STRUCTURAL = Shape(
    Structural,
    Key(
        "expectations",
        ListOf(
            Shape(
                CheckedExpectation,
                Key("id", TEXT),
                Key("text", TEXT, needed=True),
                Key("type", TEXT, needed=True),
                Key("passed", FLAG, always=True),
                Key("evidence", TEXT, needed=True),
                Key("critical", FLAG),
                Key("error", TEXT, about="Assay: why it could not be decided; passed is null then"),
            )
        ),
        on_bad=Level.ERROR,
    ),
    SUMMARY_KEY,
    Key("gate_passed", FLAG, always=True, about="false when a critical expectation failed"),
    about="what the structural checker decided about one run",
)


class ScoresByName(Codec):
    """Scores in an object keyed by dimension; some judges write a list with the name inside."""

    # No file can hold a key with NUL in it, so this one never meets a key of somebody's.
    _NAME = Key("\0name", TEXT, "name", foreign=True)
    _KEYED = Shape(DimensionScore, _NAME, Key("score", NUMBER, about="1-5"), Key("evidence", TEXT))
    _LISTED = Shape(
        DimensionScore, Key("dimension", TEXT, "name", needed=True), Key("score", NUMBER), Key("evidence", TEXT)
    )

    def read(self, value: JsonValue, place: Place) -> tuple[Any, ...]:
        if isinstance(value, list):
            place.note("reshaped", "a list; read as scores by dimension")
            return ListOf(self._LISTED).read(value, place)
        if not isinstance(value, dict):
            raise mistyped(value, "an object", place)
        return read_all(_Keyed(self._KEYED), [(name, _named(name, item)) for name, item in value.items()], place)

    def write(self, value: tuple[DimensionScore, ...]) -> JsonValue:
        return {score.name: self._KEYED.write(score) for score in value}

    def schema(self) -> JsonSchema:
        return {"type": "object", "additionalProperties": self._KEYED.schema()}


class _Keyed(Codec):
    """A score that was handed its name, which is no key of its own."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape

    def read(self, value: JsonValue, place: Place) -> DimensionScore:
        score: DimensionScore = self._shape.read(value, place)
        return score.model_copy(update={"keys": score.keys[1:]})

    def write(self, value: DimensionScore) -> JsonValue:
        return self._shape.write(value)

    def schema(self) -> JsonSchema:
        return self._shape.schema()


def _named(name: str, item: JsonValue) -> JsonValue:
    return {"\0name": name, **item} if isinstance(item, dict) else item


GRADING = skill_creator.GRADING.with_keys(
    Key("rubric_scores", ScoresByName(), about="score and evidence by dimension"),
    Key(
        "rubric_summary",
        Shape(
            RubricSummary,
            Key("weighted_mean", NUMBER),
            Key("max_possible", NUMBER),
            Key("normalized", NUMBER, about="weighted_mean / max_possible"),
        ),
    ),
)
FEEDBACK = Shape(
    FeedbackAggregate,
    Key("skill_name", TEXT),
    Key("iteration", INTEGER),
    Key("total_runs", INTEGER),
    Key(
        "suggestions",
        ListOf(
            Shape(
                FeedbackSuggestion,
                Key("frequency", INTEGER, about="how many runs said so"),
                Key("assertion", TEXT, always=True, about="the expectation it is about; null when one is missing"),
                Key("reason", TEXT),
                Key("action", TEXT),
            )
        ),
    ),
    about="what the judges said about the suite, over all runs",
)

DOCUMENTS: dict[Kind, Shape] = {
    Kind.EVALS: SUITE,
    Kind.STRUCTURAL: STRUCTURAL,
    Kind.GRADING: GRADING,
    Kind.BENCHMARK: RUBRIC_BENCHMARK,
    Kind.FEEDBACK: FEEDBACK,
}
