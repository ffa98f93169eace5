"""metrics.json: what the executor counted."""

from schemas.base import Node


class Metrics(Node):
    """Counts of one run; None where the file does not say."""

    tool_calls: dict[str, int] | None = None
    total_tool_calls: int | None = None
    total_steps: int | None = None
    files_created: tuple[str, ...] | None = None
    errors_encountered: int | None = None
    output_chars: int | None = None
    transcript_chars: int | None = None
