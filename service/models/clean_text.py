"""Text that can be written as UTF-8.

JSON can hold half of a character (\\ud83d alone), and so can the name of a file; writing either raises. What came as
two halves is put together again, a half alone becomes U+FFFD.
"""

import json
from typing import Any


def clean(value: Any) -> Any:
    """A text, or a JSON value with all its texts, without half characters."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, dict):
        return {clean(name): clean(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean(item) for item in value]
    return value


def read_json(data: bytes) -> Any:
    """A JSON value, cleaned; raises ValueError."""
    return clean(json.loads(data))
