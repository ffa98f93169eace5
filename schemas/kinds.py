"""Which document a file is, and in whose way it is written."""

from enum import StrEnum


class Kind(StrEnum):
    """The documents we know."""

    EVALS = "evals"  # a suite
    TRIGGER = "trigger"  # queries that should or should not trigger a skill: not something Assay runs
    GRADING = "grading"
    BENCHMARK = "benchmark"
    TIMING = "timing"
    METRICS = "metrics"
    EVAL_METADATA = "eval_metadata"
    HISTORY = "history"
    COMPARISON = "comparison"
    ANALYSIS = "analysis"
    STRUCTURAL = "structural"
    FEEDBACK = "feedback"  # eval_feedback_aggregate.json
    UNKNOWN = "unknown"


class Dialect(StrEnum):
    """The ways to write them."""

    SKILL_EVALUATOR = "skill_evaluator"  # structural expectations and rubrics
    SKILL_CREATOR = "skill_creator"  # statements
    CASES = "cases"  # criteria scored 1-5
    AGENTSKILLS = "agentskills"  # agentskills.io: assertions; read only
    WILD = "wild"  # close to one of the above, with keys renamed or values reshaped; read only
