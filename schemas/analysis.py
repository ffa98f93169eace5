"""analysis.json: why one version won, and what to change in the other."""

from schemas.base import Node, Number


class ComparisonSummary(Node):
    """Which skill won, unblinded."""

    winner: str | None = None
    winner_skill: str | None = None
    loser_skill: str | None = None
    comparator_reasoning: str | None = None


class InstructionFollowing(Node):
    """How well one side followed its skill, 1-10."""

    score: Number | None = None
    issues: tuple[str, ...] | None = None


class Improvement(Node):
    """One change to the skill: by priority (skill_creator) or as before and after (cases)."""

    area: str | None = None  # skill_creator's `category`
    priority: str | None = None  # high, medium, low
    suggestion: str | None = None
    expected_impact: str | None = None
    before: str | None = None
    after: str | None = None
    reasoning: str | None = None


class TranscriptInsights(Node):
    """How each side went about it."""

    winner_execution_pattern: str | None = None
    loser_execution_pattern: str | None = None


class Analysis(Node):
    """One post-hoc analysis of a comparison."""

    strengths: tuple[str, ...] | None = None  # of the winner
    weaknesses: tuple[str, ...] | None = None  # of the loser
    suggestions: tuple[Improvement, ...] | None = None
    # skill_creator
    comparison_summary: ComparisonSummary | None = None
    instruction_following: dict[str, InstructionFollowing] | None = None  # keyed winner, loser
    transcript_insights: TranscriptInsights | None = None
    # cases
    winner_version: str | None = None
    loser_version: str | None = None
