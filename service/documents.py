"""How our JSON files look."""

import json
from typing import Any


def to_json(value: Any) -> bytes:
    """JSON for people and programs: two spaces, UTF-8, a line end."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()
