"""timing.json: how long a run took and how many tokens it used."""

from schemas.base import Node, Number


class Timing(Node):
    """Durations in seconds unless the name says otherwise; timestamps as written."""

    total_tokens: int | None = None
    duration_ms: Number | None = None
    total_duration_seconds: Number | None = None
    executor_start: str | None = None
    executor_end: str | None = None
    executor_duration_seconds: Number | None = None
    grader_start: str | None = None
    grader_end: str | None = None
    grader_duration_seconds: Number | None = None
