"""The file tools of the agent, as they run inside the sandbox: one JSON object in, one out, standard library only.

This file is handed to the sandbox's own python3 as text; it imports nothing of ours and must run on Python 3.9.
"""

import json
import os
import re
import stat
import sys
from typing import Any, Dict, Iterator, List, Tuple  # noqa: UP035 - for old Pythons

MAX_FILE_BYTES = 10_000_000
MAX_LINES = 2_000
MAX_LINE_CHARS = 2_000
MAX_FOUND = 500
MAX_WALKED = 50_000


class ToolError(Exception):
    """Something the agent should hear about."""


def resolve(path: str, roots: List[str]) -> str:  # noqa: UP006
    """The real path, if it lies below one of the roots; links are followed before they are trusted."""
    real = os.path.realpath(os.path.join(roots[0], path))  # noqa: PTH118
    for root in roots:
        base = os.path.realpath(root)
        if real == base or real.startswith(base + os.sep):
            return real
    raise ToolError("%s is outside of your working directory" % path)  # noqa: UP031


def read_bytes(path: str, shown: str) -> bytes:
    """A regular file's content, within the cap."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError as error:
        raise ToolError(f"{shown}: {error.strerror}") from None
    found = os.fstat(number)
    if not stat.S_ISREG(found.st_mode):
        os.close(number)
        raise ToolError(f"{shown} is a folder or another special file; use Glob or Bash to look at it")
    with os.fdopen(number, "rb") as file:
        if found.st_size > MAX_FILE_BYTES:
            raise ToolError(f"{shown} has {found.st_size} bytes, more than {MAX_FILE_BYTES}; use Bash to look at parts")
        return file.read(MAX_FILE_BYTES + 1)


def read_text(path: str, shown: str) -> str:
    """A text file's content."""
    content = read_bytes(path, shown)
    if b"\0" in content[:8000]:
        raise ToolError(f"{shown} is a binary file of {len(content)} bytes; use Bash to look at it")
    return content.decode("utf-8", "replace")


def do_read(asked: Dict[str, Any], roots: List[str]) -> str:  # noqa: UP006
    """Lines with their numbers."""
    shown = asked["file_path"]
    lines = read_text(resolve(shown, roots), shown).splitlines()
    first = max(1, int(asked.get("offset") or 1))
    most = min(MAX_LINES, max(1, int(asked.get("limit") or MAX_LINES)))
    part = lines[first - 1 : first - 1 + most]
    if not part:
        return f"({shown} has {len(lines)} lines; nothing at line {first})" if lines else f"({shown} is empty)"
    text = "\n".join("%6d\t%s" % (first + i, line[:MAX_LINE_CHARS]) for i, line in enumerate(part))  # noqa: UP031
    left = len(lines) - (first - 1 + len(part))
    return text + (f"\n({left} more lines; read on with offset {first + len(part)})" if left > 0 else "")


def do_write(asked: Dict[str, Any], roots: List[str]) -> str:  # noqa: UP006
    """A new file, or a new content."""
    shown = asked["file_path"]
    path = resolve(shown, roots)
    existed = os.path.exists(path)  # noqa: PTH110
    store(path, shown, asked["content"])
    return f"{'updated' if existed else 'created'} {shown} ({len(asked['content'])} characters)"


def store(path: str, shown: str, content: str) -> None:
    """Write a text, with the folders above it."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NONBLOCK | os.O_NOFOLLOW, 0o644)
        with os.fdopen(number, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
            file.write(content)
    except OSError as error:
        raise ToolError(f"{shown} cannot be written: {error.strerror}") from None


def do_edit(asked: Dict[str, Any], roots: List[str]) -> str:  # noqa: UP006
    """One text replaced by another."""
    shown, old, new = asked["file_path"], asked["old_string"], asked["new_string"]
    path = resolve(shown, roots)
    text = read_text(path, shown)
    count = text.count(old) if old else 0
    if count == 0:
        raise ToolError(f"old_string is not in {shown}; read the file and copy the text exactly")
    if count > 1 and not asked.get("replace_all"):
        raise ToolError(f"old_string is {count} times in {shown}; give more context, or set replace_all")
    store(path, shown, text.replace(old, new))
    return f"replaced {count} in {shown}"


def walk(top: str, roots: List[str]) -> Iterator[Tuple[str, str]]:  # noqa: UP006
    """Files below a folder: real path and path as shown; links are not followed."""
    start = resolve(top, roots)
    if os.path.isfile(start):  # noqa: PTH113
        yield start, top
        return
    seen = 0
    for folder, names, files in os.walk(start):
        names[:] = sorted(name for name in names if name != ".git")
        for name in sorted(files):
            seen += 1
            if seen > MAX_WALKED:
                return
            path = os.path.join(folder, name)  # noqa: PTH118
            yield path, os.path.relpath(path, start)


def glob_pattern(pattern: str) -> "re.Pattern[str]":
    """A glob as an expression over a whole relative path: ** is any number of folders, the rest stays in one."""
    segments = [segment for segment in pattern.split("/") if segment not in ("", ".")]
    if segments and segments[-1] == "**":
        segments.append("*")
    parts = ["(?:.*/)?" if segment == "**" else translate(segment) + "/" for segment in segments]
    return re.compile("".join(parts)[:-1] + r"\Z", re.S)


def translate(segment: str) -> str:
    """One segment of a glob."""
    parts = []
    for piece in re.findall(r"\[[^\]/]+\]|.", segment, re.S):
        if piece == "*":
            parts.append("[^/]*")
        elif piece == "?":
            parts.append("[^/]")
        elif len(piece) > 1:
            inner = piece[1:-1].replace("\\", "\\\\")
            parts.append("[" + ("^" + inner[1:] if inner[0] in "!^" else inner) + "]")
        else:
            parts.append(re.escape(piece))
    return "".join(parts)


def do_glob(asked: Dict[str, Any], roots: List[str]) -> str:  # noqa: UP006
    """Names of files that fit a pattern."""
    wanted = asked["pattern"]
    if "/" not in wanted:
        wanted = "**/" + wanted
    matches = glob_pattern(wanted)
    names = [shown for _, shown in walk(asked.get("path") or ".", roots) if matches.match(shown)]
    more = f"\n({len(names) - MAX_FOUND} more)" if len(names) > MAX_FOUND else ""
    return "\n".join(names[:MAX_FOUND]) + more if names else "no files found"


def do_grep(asked: Dict[str, Any], roots: List[str]) -> str:  # noqa: UP006
    """Lines, files or counts that fit an expression."""
    try:
        expression = re.compile(asked["pattern"], re.I if asked.get("-i") else 0)
    except re.error as error:
        raise ToolError(f"the pattern is no regular expression: {error}") from None
    wanted = asked.get("glob")
    matches = glob_pattern(wanted if wanted and "/" in wanted else "**/" + (wanted or "*"))
    mode = asked.get("output_mode") or "files_with_matches"
    found: List[str] = []  # noqa: UP006
    for path, shown in walk(asked.get("path") or ".", roots):
        if matches.match(shown):
            found += hits(path, shown, expression, mode)
        if len(found) > MAX_FOUND:
            return "\n".join(found[:MAX_FOUND]) + "\n(more was left out)"
    return "\n".join(found) or "no matches found"


def hits(path: str, shown: str, expression: "re.Pattern[str]", mode: str) -> List[str]:  # noqa: UP006
    """What one file adds to the answer."""
    try:
        lines = read_text(path, shown).splitlines()
    except ToolError:
        return []  # binary, special or too large: not searched
    rows = [(i, line) for i, line in enumerate(lines, 1) if expression.search(line[:MAX_LINE_CHARS])]
    if not rows:
        return []
    if mode == "content":
        return [f"{shown}:{i}:{line[:MAX_LINE_CHARS]}" for i, line in rows]
    return [f"{shown}:{len(rows)}"] if mode == "count" else [shown]


DOING = {"Read": do_read, "Write": do_write, "Edit": do_edit, "Glob": do_glob, "Grep": do_grep}


def main() -> None:
    """Answer one question on stdin."""
    question = json.loads(sys.stdin.buffer.read().decode("utf-8", "surrogatepass"))
    try:
        answer = {"text": DOING[question["tool"]](question["input"], question["roots"]), "is_error": False}
    except ToolError as error:
        answer = {"text": str(error), "is_error": True}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        answer = {"text": f"the tool failed: {type(error).__name__}: {error}", "is_error": True}
    sys.stdout.write(json.dumps(answer))


if __name__ == "__main__":
    main()
