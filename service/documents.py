"""How our JSON files look."""

import json
from datetime import UTC, datetime
from typing import Any


def to_json(value: Any) -> bytes:
    """JSON for people and programs: two spaces, UTF-8, a line end."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def stamp(moment: float) -> str:
    """A moment as our files write it: UTC, to the millisecond."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
