"""Checks that count: files, lines, words."""

import operator
from collections.abc import Callable

from schemas.checks import FileCount, FileExists, MaxLines, MaxWords
from service.checks.evidence import printable
from service.checks.verdict import Given, Verdict
from service.sandbox.reader import shown

_OPERATORS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


def file_exists(fields: FileExists, given: Given) -> Verdict:
    """At least one regular file matches."""
    found = given.outputs.matching(fields.pattern)
    if not found:
        return Verdict(False, no_files(fields.pattern) + " in outputs")
    return Verdict(True, "Found: " + ", ".join(shown(path) for path in found[:5]))


def file_count(fields: FileCount, given: Given) -> Verdict:
    """The number of matching regular files."""
    count = len(given.outputs.matching(fields.pattern))
    evidence = f"Found {count} file(s) matching '{printable(fields.pattern)}' "
    evidence += f"(expected {fields.operator} {fields.count})"
    return Verdict(_OPERATORS[fields.operator](count, fields.count), evidence)


def max_lines(fields: MaxLines, given: Given) -> Verdict:
    """Every matching file is short enough in lines."""
    return _at_most(fields.pattern, fields.max, "line(s)", _lines, given)


def max_words(fields: MaxWords, given: Given) -> Verdict:
    """Every matching file is short enough in words."""
    return _at_most(fields.pattern, fields.max, "word(s)", lambda text: len(text.split()), given)


def no_files(pattern: str) -> str:
    """The sentence for a pattern that names nothing."""
    return f"No files matching '{printable(pattern)}'"


def _at_most(pattern: str, most: int, unit: str, count: Callable[[str], int], given: Given) -> Verdict:
    found = given.outputs.matching(pattern)
    if not found:
        return Verdict(False, no_files(pattern))
    counts = {path: count(given.outputs.read_text(path)) for path in found}
    longest = max(counts, key=lambda path: counts[path])
    evidence = (
        f"{shown(longest)} has {counts[longest]} {unit} (at most {most} allowed), the most of {len(found)} file(s)"
    )
    return Verdict(counts[longest] <= most, evidence)


def _lines(text: str) -> int:
    """As an editor counts: a newline at the end does not begin another line."""
    return text.count("\n") + (1 if text and not text.endswith("\n") else 0)
