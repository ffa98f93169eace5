"""eval_feedback_aggregate.json: what the judges said about the suite, over all runs."""

from schemas.base import Node


class FeedbackSuggestion(Node):
    """One suggestion and how many runs made it."""

    frequency: int | None = None
    assertion: str | None = None  # the expectation it is about; None when it is about one that is missing
    reason: str | None = None
    action: str | None = None


class FeedbackAggregate(Node):
    """All suggestions of a batch, the most frequent first."""

    skill_name: str | None = None
    iteration: int | None = None
    total_runs: int | None = None
    suggestions: tuple[FeedbackSuggestion, ...] | None = None
