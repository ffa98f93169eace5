"""comparison.json: two outputs compared blind, labelled A and B."""

from schemas.base import Node, Number
from schemas.grading import GradedExpectation


class OutputRubric(Node):
    """One output on the comparator's own rubric: criteria 1-5 in two groups, overall 1-10."""

    content: dict[str, Number] | None = None
    structure: dict[str, Number] | None = None
    content_score: Number | None = None
    structure_score: Number | None = None
    overall_score: Number | None = None


class OutputQuality(Node):
    """What one output does well and badly, 1-10."""

    score: Number | None = None
    strengths: tuple[str, ...] | None = None
    weaknesses: tuple[str, ...] | None = None


class ExpectationResults(Node):
    """How one output meets the suite's expectations."""

    passed: int | None = None
    total: int | None = None
    pass_rate: Number | None = None
    details: tuple[GradedExpectation, ...] | None = None


class Comparison(Node):
    """One blind comparison; the maps are keyed by label."""

    winner: str | None = None  # A, B or TIE
    reasoning: str | None = None
    rubric: dict[str, OutputRubric] | None = None
    output_quality: dict[str, OutputQuality] | None = None
    expectation_results: dict[str, ExpectationResults] | None = None
    # the cases dialect
    eval_prompt: str | None = None
    scores: dict[str, dict[str, Number]] | None = None  # dimension -> label -> 1-10
