"""A suite: the prompts and what a good answer must show, in canonical form."""

from pydantic import Field, JsonValue

from schemas.base import CaseId, Node, Number


class EvalConfig(Node):
    """What a suite asks of the batch that runs it; None where it does not say."""

    runs_per_eval: int | None = None
    structural_gate: bool | None = None
    judge_model: str | None = None
    baseline_comparison: bool | None = None


class StructuralExpectation(Node):
    """A yes/no thing decided by code; `params` are the type's own fields (pattern, match, count, ...)."""

    id: str
    type: str
    description: str | None = None
    critical: bool | None = None  # None means not critical
    params: dict[str, JsonValue] = Field(default_factory=dict)


class Statement(Node):
    """A yes/no thing decided by the judge."""

    text: str
    id: CaseId | None = None


class Criterion(Node):
    """The cases dialect's expectation: scored 1-5, passed at 3 or more."""

    criterion: str
    description: str | None = None
    required: bool | None = None  # None means not required


class Dimension(Node):
    """One rubric axis, scored 1-5."""

    name: str
    id: str | None = None
    description: str | None = None
    weight: Number | None = None  # None weighs 1
    scoring: dict[str, str] = Field(default_factory=dict)  # anchors by score: "1", "3", "5"


class Rubric(Node):
    """How the judge scores quality."""

    dimensions: tuple[Dimension, ...] = ()


class Case(Node):
    """One eval of a suite."""

    id: CaseId
    prompt: str
    name: str | None = None
    expected_output: str | None = None
    files: tuple[str, ...] = ()
    structural: tuple[StructuralExpectation, ...] = ()
    statements: tuple[Statement, ...] = ()
    criteria: tuple[Criterion, ...] = ()
    rubric: Rubric | None = None


class Suite(Node):
    """One evals.json."""

    cases: tuple[Case, ...]
    skill_name: str | None = None
    skill_path: str | None = None  # the cases dialect's `skill`
    schema_version: str | None = None  # the cases dialect's `version`
    config: EvalConfig | None = None
