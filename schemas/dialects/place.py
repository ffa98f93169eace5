"""Where we are in somebody's document, and what we found there."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from schemas.findings import Finding, Level

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")
# A hostile file could be wrong in a million places; this many of one kind tell the story.
_SHOWN_PER_CODE = 100


class Place:
    """A node of a document: knows its way from the root and where findings go."""

    __slots__ = ("_findings", "_parent", "_part")

    def __init__(self, findings: list[Finding], parent: "Place | None" = None, part: str | int | None = None) -> None:
        self._findings = findings
        self._parent = parent
        self._part = part

    def at(self, part: str | int) -> "Place":
        """The place one step further down."""
        return Place(self._findings, self, part)

    @property
    def path(self) -> str:
        """The JSON path, such as evals[2].prompt; empty for the whole document."""
        parts: list[str | int] = []
        place: Place | None = self
        while place is not None and place._part is not None:
            parts.append(place._part)
            place = place._parent
        return path_of(reversed(parts))

    def error(self, code: str, message: str) -> None:
        """Say that the document cannot be used because of this place."""
        self.add(Level.ERROR, code, message)

    def warn(self, code: str, message: str) -> None:
        """Say that something here contradicts itself."""
        self.add(Level.WARNING, code, message)

    def note(self, code: str, message: str) -> None:
        """Say how this place was understood."""
        self.add(Level.NOTE, code, message)

    def add(self, level: Level, code: str, message: str) -> None:
        """Keep one finding about this place."""
        self._findings.append(Finding(level=level, path=self.path, message=message, code=code))


def path_of(parts: Iterable[str | int]) -> str:
    """Keys and indices as one JSON path."""
    path = ""
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        elif _PLAIN_KEY.match(part):
            path += f".{part}" if path else part
        else:
            path += f"[{json.dumps(part, ensure_ascii=False)}]"
    return path


@dataclass(frozen=True, slots=True)
class Problem:
    """Why a value cannot be used; the level is for whoever wanted the value to say."""

    place: Place
    code: str
    message: str


class Unusable(Exception):
    """A value is not what its key promises; empty when the reasons are among the findings already."""

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__(*(problem.message for problem in problems))


def shown(findings: list[Finding]) -> tuple[Finding, ...]:
    """Findings for people: the same note once with a count, errors first, no more of one code than anyone reads."""
    merged = _merge_notes(findings)
    counts: Counter[str] = Counter()
    kept: list[Finding] = []
    for finding in sorted(merged, key=lambda one: list(Level).index(one.level)):
        counts[finding.code] += 1
        if counts[finding.code] <= _SHOWN_PER_CODE:
            kept.append(finding)
    return (*kept, *(_more(code, count, kept) for code, count in counts.items() if count > _SHOWN_PER_CODE))


def _merge_notes(findings: list[Finding]) -> list[Finding]:
    """One finding per sentence, at the first of its places."""
    places: Counter[tuple[Level, str, str]] = Counter()
    first: dict[tuple[Level, str, str], Finding] = {}
    for finding in findings:
        # Errors and warnings are to be mended place by place, so each keeps its own.
        where = "" if finding.level is Level.NOTE else finding.path
        key = (finding.level, where, finding.message)
        places[key] += 1
        first.setdefault(key, finding)
    return [_counted(finding, places[key]) for key, finding in first.items()]


def _counted(finding: Finding, count: int) -> Finding:
    """The finding, saying how many other places it stands for."""
    if count == 1 or finding.level is not Level.NOTE:
        return finding
    return finding.model_copy(
        update={"message": f"{finding.message} (and at {count - 1} more place{'s' if count > 2 else ''})"}
    )


def _more(code: str, count: int, kept: list[Finding]) -> Finding:
    """Stands for the findings of one code that were left off."""
    level = next(finding.level for finding in kept if finding.code == code)
    return Finding(level=level, path="", message=f"{count - _SHOWN_PER_CODE} more of this kind", code=code)
