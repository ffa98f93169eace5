"""Fences around what an agent wrote, with a code that it cannot have known."""

import hashlib
import json

from service.judging.material import JudgeMaterial

CODE_CHARS = 16
MAX_NAME_CHARS = 300


class Fence:
    """Opens and closes pieces of evidence with one code."""

    def __init__(self, code: str) -> None:
        self.code = code

    def around(self, what: str, text: str) -> str:
        """One piece of evidence between its two lines."""
        return f"<<<{self.code} {what}\n{text}\n{self.code}>>>"


def fence_for(material: JudgeMaterial, texts: list[str]) -> Fence:
    """The fence of a run: its code follows from all the agent wrote, so nothing the agent wrote can contain it.

    It is the same every time the run is judged: a repeated request is the same request.
    """
    for attempt in range(1_000):
        code = hashlib.sha256(f"fence:{attempt}:{material.digest}".encode()).hexdigest()[:CODE_CHARS]
        if not any(code in text for text in texts):
            return Fence(code)
    raise AssertionError("a thousand codes all occur in the material")


def quoted(name: str) -> str:
    """A file name that cannot break out of its line."""
    return json.dumps(name[:MAX_NAME_CHARS], ensure_ascii=True)
