"""Files of runs as a page can carry them: text cut to size, small pictures, the rest by name only."""

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath

from markupsafe import escape

from service.aggregation.benchmark import Aggregates
from service.aggregation.records import RunRecord
from service.workspaces.artifacts import Artifacts

# Formats a browser shows as a picture and never runs; SVG is not among them.
_PICTURES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\ud800-\udfff]")
_TEXTS = frozenset({".md", ".txt", ".json", ".jsonl", ".csv", ".log", ".html", ".xml", ".yaml", ".yml"})
ReadMore = Callable[[int], bytes]
_HIDDEN = frozenset({"outputs/metrics.json", "metrics.json", "benchmark.json"})


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of the runs a page takes with it."""

    file_bytes: int = 96 * 2**10  # of one text, head and tail together
    picture_bytes: int = 512 * 2**10
    files: int = 30  # of one run
    page_bytes: int = 24 * 2**20  # of all excerpts together, as the page writes them
    words_bytes: int = 8 * 2**20  # of all decisions and their evidence together
    runs: int = 1_000
    cases: int = 500  # lines of the table of cases

    def runs_of_each_arm(self, found: Aggregates) -> int:
        """How many runs of each arm of a case a page shows: every case has its share before one has all."""
        return max(1, self.runs // max(1, len(found.tallies.cases) * len(found.plan.arms)))


@dataclass(frozen=True, slots=True)
class Excerpt:
    """One file of a run: text, a picture, or only its name and size."""

    name: str
    size: int
    text: str | None = None
    picture: str | None = None  # a data: address
    remark: str | None = None  # why it is not all there


class Budget:
    """What is left of the page's size."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.left = limits.page_bytes
        self.words_left = limits.words_bytes
        self.runs_left = limits.runs

    def has_room(self, share: float) -> bool:
        """Whether one more run may be shown by those who may use this share of all words."""
        return self.runs_left > 0 and self.words_left > (1 - share) * self.limits.words_bytes

    @property
    def shown(self) -> int:
        """How many runs are shown so far."""
        return self.limits.runs - self.runs_left

    def count(self, run: RunRecord) -> None:
        """One run more, with what the judge wrote about it."""
        self.runs_left -= 1
        # Not as JSON: a judge's words may hold half a surrogate, which JSON refuses.
        words = str(run.grading.model_dump()) if run.grading else ""
        self.words_left -= len(escape(words)) + len(escape(run.reason or ""))

    def excerpts(self, run: RunRecord, artifacts: Artifacts) -> list[Excerpt]:
        """The files of a run, transcript first."""
        names = sorted(
            (name for name in artifacts.names(run) if name not in _HIDDEN),
            key=lambda name: (PurePosixPath(name).name != "transcript.md", name),
        )
        found = [self._excerpt(run, name, artifacts) for name in names[: self.limits.files]]
        if len(names) > self.limits.files:
            found.append(Excerpt(f"{len(names) - self.limits.files} more files", 0, remark="not shown here"))
        return found

    def _excerpt(self, run: RunRecord, name: str, artifacts: Artifacts) -> Excerpt:
        if self.left <= 0:
            return Excerpt(name, 0, remark="not embedded: the page is large enough")
        kind = _PICTURES.get(PurePosixPath(name).suffix.lower())
        most = self.limits.picture_bytes if kind else self.limits.file_bytes
        with artifacts.open(run, name) as file:
            head = file.read(most + 1)
            tail, size = b"", len(head)
            if len(head) > most:
                head, tail, size = self._ends(head, file.read, most)
        found = _picture(name, kind, head, size, whole=not tail) if kind else _text(name, head, tail, size)
        # Escaped, a text may be five times as long.
        self.left -= len(escape(found.text or "")) + len(found.picture or "")
        return found

    def _ends(self, head: bytes, read: ReadMore, most: int) -> tuple[bytes, bytes, int]:
        """Head and tail of a file that is too long, read through once without keeping it."""
        half, size = most // 2, len(head)
        tail = head[-half:]
        while chunk := read(2**20):
            size += len(chunk)
            tail = (tail + chunk)[-half:]
        return head[:half], tail, size


def _picture(name: str, kind: str, data: bytes, size: int, *, whole: bool) -> Excerpt:
    if not whole:
        return Excerpt(name, size, remark="picture too large to embed")
    return Excerpt(name, size, picture=f"data:{kind};base64,{base64.b64encode(data).decode()}")


def _text(name: str, head: bytes, tail: bytes, size: int) -> Excerpt:
    # A text that holds a NUL is an odd text; anything else that does is no text.
    if b"\0" in head[:8192] and PurePosixPath(name).suffix.lower() not in _TEXTS:
        return Excerpt(name, size, remark="binary")
    text = readable(head.decode("utf-8", "replace"))
    if not tail:
        return Excerpt(name, size, text)
    cut = size - len(head) - len(tail)
    whole = f"{text}\n\n[… {cut:,} bytes left out …]\n\n{readable(tail.decode('utf-8', 'replace'))}"
    return Excerpt(name, size, whole, remark=f"{cut:,} of {size:,} bytes left out")


def readable(text: str) -> str:
    """Text without characters a page cannot hold, or that make it read otherwise than it is written."""
    return _CONTROLS.sub("\ufffd", text)
