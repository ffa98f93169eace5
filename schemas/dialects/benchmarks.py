"""Benchmarks as objects; skill_evaluator adds rubric numbers to what skill_creator has."""

from typing import Any

from pydantic import JsonValue

from schemas.benchmark import (
    Benchmark,
    BenchmarkMetadata,
    BenchmarkRun,
    ConfigurationSummary,
    RunResult,
    RunSummary,
    Spread,
)
from schemas.dialects import wild
from schemas.dialects.codecs import (
    ANYTHING,
    ID,
    INTEGER,
    NUMBER,
    OBJECT,
    TEXT,
    TEXT_OR_NUMBER,
    TEXTS,
    JsonSchema,
    ListOf,
    MapOf,
)
from schemas.dialects.gradings import GRADED
from schemas.dialects.place import Place, Unusable
from schemas.dialects.shape import Key, Shape, foreign

SPREAD = Shape(
    Spread,
    Key("mean", NUMBER),
    Key("stddev", NUMBER, about="of the sample (n-1); 0 for one run"),
    Key("min", NUMBER),
    Key("max", NUMBER),
)
_RUBRIC_KEYS = (
    Key("rubric_normalized", SPREAD, about="rubric score, 0-1"),
    Key("overall_efficiency", SPREAD, about="pass rate and rubric in one number"),
    Key("consistency", NUMBER, about="1 - stddev / mean of overall_efficiency"),
)
_DIMENSIONS_KEY = Key("rubric_dimensions", MapOf(SPREAD), about="spread per dimension")
PLAIN_CONFIGURATION = Shape(
    ConfigurationSummary,
    Key("pass_rate", SPREAD),
    *foreign(_RUBRIC_KEYS),
    Key("time_seconds", SPREAD),
    Key("tokens", SPREAD),
    *foreign([_DIMENSIONS_KEY]),
)
RUBRIC_CONFIGURATION = PLAIN_CONFIGURATION.with_keys(*_RUBRIC_KEYS, _DIMENSIONS_KEY)
_DELTA_KEY = Key("delta", MapOf(TEXT_OR_NUMBER), about="treatment minus control, such as +0.50")
_ARMS = {"with_skill", "without_skill", "old_skill", "new_skill", "baseline"}


class RunSummaryShape(Shape):
    """Configurations by name, and the delta among them."""

    configuration = PLAIN_CONFIGURATION

    def settle(self, fields: dict[str, Any], value: dict[str, JsonValue], place: Place) -> None:
        found: dict[str, ConfigurationSummary] = {}
        for name, item in value.items():
            if name != "delta" and self._is_configuration(name, item):
                self._take(name, fields["extra"], found, place.at(name))
        fields["configurations"] = found

    def _is_configuration(self, name: str, item: JsonValue) -> bool:
        """Whether an object holds one of our metrics; an empty one may yet."""
        if not isinstance(item, dict):
            return False
        return not item or name in _ARMS or any(item.get(key.name) is not None for key in self.configuration.keys)

    def _take(
        self, name: str, extra: dict[str, JsonValue], found: dict[str, ConfigurationSummary], place: Place
    ) -> None:
        try:
            found[name] = self.configuration.read(extra[name], place)
        except Unusable:  # its keys are all optional, so this is an object that is none
            return
        del extra[name]

    def write(self, value: Any) -> JsonValue:
        written = {name: self.configuration.write(item) for name, item in value.configurations.items()}
        # Viewers take the first configurations as their columns, so these go before the delta.
        keys = (*value.keys, *(name for name in written if name not in value.keys))
        return super().write(value.model_copy(update={"keys": keys, "extra": {**written, **value.extra}}))

    def schema(self) -> JsonSchema:
        return {**super().schema(), "additionalProperties": self.configuration.schema()}


class RubricRunSummaryShape(RunSummaryShape):
    """The same with rubric numbers in each configuration."""

    configuration = RUBRIC_CONFIGURATION


_METADATA = Shape(
    BenchmarkMetadata,
    Key("skill_name", TEXT),
    Key("skill_path", TEXT),
    Key("executor_model", TEXT),
    Key("analyzer_model", TEXT),
    Key("timestamp", TEXT),
    Key("evals_run", ListOf(ID)),
    Key("runs_per_configuration", INTEGER),
    Key("provenance", OBJECT, about="Assay: digests, models and settings behind the numbers"),
)
_RESULT = Shape(
    RunResult,
    Key("pass_rate", NUMBER),
    Key("passed", INTEGER),
    Key("failed", INTEGER),
    Key("total", INTEGER),
    Key("time_seconds", NUMBER),
    Key("tokens", NUMBER),
    Key("tool_calls", INTEGER),
    Key("errors", INTEGER),
    Key("outcome", TEXT, about="Assay: how the run ended"),
    Key("rubric_normalized", NUMBER),
    Key("overall_efficiency", NUMBER),
)
_RUN = Shape(
    BenchmarkRun,
    Key("eval_id", ID),
    Key("eval_name", TEXT),
    Key("configuration", TEXT, aliases=("config",)),
    Key("run_number", INTEGER),
    Key("result", _RESULT),
    Key("expectations", ListOf(GRADED)),
    Key("notes", TEXTS),
)


def benchmark_shape(run_summary: Shape) -> Shape:
    """A whole benchmark around one kind of summary."""
    return Shape(
        Benchmark,
        Key("metadata", _METADATA),
        Key("runs", ListOf(_RUN)),
        Key("run_summary", run_summary),
        Key("notes", TEXTS, aliases=wild.NOTES),
        Key("coverage", ANYTHING, about="Assay: planned, scored and every other outcome"),
        Key("statistics", ANYTHING, about="Assay: verdict, intervals, cases needed"),
        Key("items", ANYTHING, about="Assay: what each expectation tells the configurations apart"),
        about="all runs of a batch and what they say together",
    )


PLAIN_BENCHMARK = benchmark_shape(RunSummaryShape(RunSummary, _DELTA_KEY))
RUBRIC_BENCHMARK = benchmark_shape(RubricRunSummaryShape(RunSummary, _DELTA_KEY))
