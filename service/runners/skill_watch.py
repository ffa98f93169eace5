"""Which files of its skill an agent opened, from what it asked its tools and what they answered.

What an agent writes proves nothing: a note may name SKILL.md. So only paths and commands that read are looked at, and
the lines of the answers, which are the skill's own however the agent got at them.
"""

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from service.runners.commands import Places, named_by, normal
from service.runners.port import Assignment
from service.sandbox.reader import CannotRead, Caps, Reader

_TEXTS = Caps(file_bytes=2**20)
_LINES = 2_000  # of one file
_LEAST_CHARS = 24  # shorter lines are alike by chance
_WRITERS = frozenset({"Write", "Edit", "MultiEdit", "NotebookEdit", "TodoWrite"})  # their answers repeat what was asked
_READERS = {"Read": "file_path", "NotebookRead": "notebook_path"}
# What tools put before a line of a file: its path, its number, or both.
_BEFORE = re.compile(r"\s*(?:[^\s:]{1,300}:)?(?:\d{1,9}[:\t→-])?")


@dataclass(frozen=True)
class StagedSkill:
    """A skill as one agent finds it."""

    folder: Path  # on this machine
    directory: str  # where the agent sees it
    places: Places
    given: frozenset[str] = frozenset()  # lines that the agent was told or given anyway: they prove nothing


def staged_skill(assignment: Assignment, directory: str | None, places: Places) -> StagedSkill | None:
    """The skill of an assignment; None in an arm without one."""
    if assignment.skill is None or directory is None:
        return None
    given = [assignment.prompt, assignment.skill.description, *_texts(assignment.workspace)]
    lines = frozenset(line.strip() for text in given for line in text.splitlines())
    return StagedSkill(assignment.skill.folder, directory.rstrip("/"), places, lines)


def _texts(folder: Path) -> Iterator[str]:
    reader = Reader(folder, _TEXTS)
    for path in reader.listing.files:
        try:
            yield reader.read_text(path)
        except CannotRead:
            continue


class SkillWatch:
    """Watches one run."""

    def __init__(self, skill: StagedSkill | None, canary: str | None = None, other_canary: str | None = None) -> None:
        self._skill = skill
        self._canary = canary
        self._other_canary = other_canary
        self._opened: set[str] = set()
        self.saw_other = False  # the canary of a skill that is not this arm's
        files = Reader(skill.folder, _TEXTS).listing.files if skill else ()
        self._files = {f"{skill.directory}/{path}": path for path in files} if skill else {}

    def see(self, tool: str, asked: Any, answered: str, is_error: bool = False) -> None:
        """One tool use: what was asked for, and the raw answer."""
        if self._other_canary and (self._other_canary in answered or self._other_canary in str(asked)):
            self.saw_other = True
        if self._canary and self._canary in answered:
            self._opened.add("SKILL.md")
        if self._skill is None or tool in _WRITERS:
            return
        self._opened.update(self._quoted(answered))
        if not is_error and isinstance(asked, Mapping):
            self._opened.update(self._named(self._skill, tool, asked, answered))

    def _named(self, skill: StagedSkill, tool: str, asked: Mapping[str, Any], answered: str) -> Iterable[str]:
        if tool == "Bash":
            return named_by(str(asked.get("command", "")), skill.places, self._files)
        if tool == "Grep":
            return self._found(skill.places, str(asked.get("path") or "."), answered)
        path = normal(str(asked.get(_READERS.get(tool, ""), "")), skill.places.working_directory, skill.places)
        return [self._files[path]] if path in self._files else []

    def _found(self, places: Places, top: str, answered: str) -> Iterator[str]:
        """Files in which a search found something: their names begin the lines, relative to one place or another."""
        bases = (normal(top, places.working_directory, places), places.working_directory)
        for line in answered.splitlines():
            names = (line, line.partition(":")[0])
            paths = {normal(name, base, places) for name in names for base in bases}
            yield from (self._files[path] for path in paths if path in self._files)

    def _quoted(self, answered: str) -> Iterator[str]:
        """Files of which a line stands in the answer that is in no other."""
        for line in answered.splitlines() if self._lines else ():
            found = _BEFORE.match(line)
            for words in (line.strip(), line[found.end() if found else 0 :].strip()):
                if words in self._lines:
                    yield self._lines[words]

    @functools.cached_property
    def _lines(self) -> dict[str, str]:
        """Line -> the one file that has it."""
        if self._skill is None:
            return {}
        owners: dict[str, set[str]] = {}
        reader = Reader(self._skill.folder, _TEXTS)
        for path in self._files.values():
            for line in _lines_of(reader, path):
                owners.setdefault(line, set()).add(path)
        given = self._skill.given
        return {line: min(paths) for line, paths in owners.items() if len(paths) == 1 and line not in given}

    def opened(self, path: str) -> None:
        """A file of the skill was opened for certain."""
        self._opened.add(path)

    @property
    def files_read(self) -> tuple[str, ...]:
        """The skill's files that were opened."""
        return tuple(sorted(self._opened))

    @property
    def used(self) -> bool:
        """Whether the skill was opened at all."""
        return bool(self._opened)


def _lines_of(reader: Reader, path: str) -> Iterator[str]:
    try:
        lines = reader.read_text(path).splitlines()[:_LINES]
    except CannotRead:
        return  # too large to be read by an agent in one piece
    for line in map(str.strip, lines):
        if len(line) >= _LEAST_CHARS and any(map(str.isalpha, line)) and "assay-canary-" not in line:
            yield line
