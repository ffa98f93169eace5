"""benchmark.json: all runs of a batch and what they say together."""

from pydantic import Field, JsonValue

from schemas.base import CaseId, Node, Number
from schemas.grading import GradedExpectation


class Spread(Node):
    """One metric over the runs of one configuration; stddev is the sample's (n-1)."""

    mean: Number | None = None
    stddev: Number | None = None
    min: Number | None = None
    max: Number | None = None


class RunResult(Node):
    """One run in numbers; None where the run has no such number."""

    pass_rate: Number | None = None
    passed: int | None = None
    failed: int | None = None
    total: int | None = None
    time_seconds: Number | None = None
    tokens: Number | None = None
    tool_calls: int | None = None
    errors: int | None = None
    # ours: absent in files of other tools
    outcome: str | None = None
    rubric_normalized: Number | None = None
    overall_efficiency: Number | None = None


class BenchmarkRun(Node):
    """One run: case x configuration x run number."""

    eval_id: CaseId | None = None
    eval_name: str | None = None
    configuration: str | None = None
    run_number: int | None = None
    result: RunResult | None = None
    expectations: tuple[GradedExpectation, ...] | None = None
    notes: tuple[str, ...] | None = None


class BenchmarkMetadata(Node):
    """What was run, with what, when."""

    skill_name: str | None = None
    skill_path: str | None = None
    executor_model: str | None = None
    analyzer_model: str | None = None
    timestamp: str | None = None
    evals_run: tuple[CaseId, ...] | None = None
    runs_per_configuration: int | None = None
    provenance: dict[str, JsonValue] | None = None  # ours: digests, models, settings, weights


class ConfigurationSummary(Node):
    """One configuration over all its runs."""

    pass_rate: Spread | None = None
    rubric_normalized: Spread | None = None
    overall_efficiency: Spread | None = None
    consistency: Number | None = None
    time_seconds: Spread | None = None
    tokens: Spread | None = None
    rubric_dimensions: dict[str, Spread] | None = None


class RunSummary(Node):
    """Configurations in the order viewers show them, then treatment minus control."""

    configurations: dict[str, ConfigurationSummary] = Field(default_factory=dict)
    delta: dict[str, str | Number | None] | None = None  # strings such as +0.50; numbers in the agentskills.io form


class Benchmark(Node):
    """One batch, aggregated."""

    metadata: BenchmarkMetadata | None = None
    runs: tuple[BenchmarkRun, ...] | None = None
    run_summary: RunSummary | None = None
    notes: tuple[str, ...] | None = None
    # ours: absent in files of other tools
    coverage: JsonValue = None  # planned, scored and every other outcome, per configuration
    statistics: JsonValue = None  # verdict, intervals, cases needed
    items: JsonValue = None  # one entry per case and expectation: what discriminates, what never fails
