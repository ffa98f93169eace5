"""Globs over relative paths, matched by segments and from the end: `*.ts` is found at any depth.

`*`, `?` and `[ab]` stay within a segment, `**` is any number of folders. Time is linear in the path for any pattern.
"""

import fnmatch
import re
from collections.abc import Callable

from service.errors import BadInput

_MAX_CHARS = 1_000
_MAX_SEGMENTS = 64
_BRACES = re.compile(r"\{[^{}/]*,[^{}/]*\}")

Matches = Callable[[str], bool]


def compile_glob(pattern: str) -> Matches:
    """A test for relative paths with `/`; raises BadInput for what a glob here cannot be."""
    segments = _segments(pattern)
    if segments[-1] == "**":  # files in the folder, not the folder itself
        segments.append("*")
    tests = [None if segment == "**" else _segment(segment) for segment in segments]
    if None in tests:
        return lambda path: _walk(tests, path.split("/"))
    plain = [test for test in tests if test is not None]
    if len(plain) == 1:
        last = plain[0]
        return lambda path: last(path.rpartition("/")[2])
    return lambda path: _ends_with(plain, path.split("/"))


def _segments(pattern: str) -> list[str]:
    segments = [segment for segment in pattern.split("/") if segment not in ("", ".")]
    if not segments:
        raise BadInput(f"pattern '{pattern}' is empty; '*' is every file")
    if pattern.startswith("/") or ".." in segments or "\0" in pattern:
        raise BadInput(f"pattern '{pattern}' leaves the outputs; write it relative to them and without '..'")
    if _BRACES.search(pattern):
        raise BadInput(f"pattern '{pattern}' has {{a,b}}, which globs here do not know; write two checks")
    if len(pattern) > _MAX_CHARS or len(segments) > _MAX_SEGMENTS:
        raise BadInput(f"pattern '{pattern[:40]}…' is longer than {_MAX_CHARS} characters or {_MAX_SEGMENTS} segments")
    return segments


def _segment(segment: str) -> Matches:
    if not any(character in segment for character in "*?["):
        return segment.__eq__
    match = re.compile(fnmatch.translate(segment)).match
    return lambda name: match(name) is not None


def _ends_with(tests: list[Matches], parts: list[str]) -> bool:
    tail = parts[-len(tests) :]
    return len(tail) == len(tests) and all(test(part) for test, part in zip(tests, tail, strict=True))


def _walk(tests: list[Matches | None], parts: list[str]) -> bool:
    """Follow all ways through the pattern at once; it may begin at any folder."""
    states = _past_folders(tests, {0})
    for part in parts:
        reached = {state + 1 for state in states if state < len(tests) and _passes(tests[state], part)}
        stayed = {state for state in states if state < len(tests) and tests[state] is None}
        states = _past_folders(tests, reached | stayed | {0})
    return len(tests) in states


def _passes(test: Matches | None, part: str) -> bool:
    return test is not None and test(part)


def _past_folders(tests: list[Matches | None], states: set[int]) -> set[int]:
    """`**` may also be nothing."""
    found = set(states)
    for state in states:
        while state < len(tests) and tests[state] is None:
            state += 1
            found.add(state)
    return found
