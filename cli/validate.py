"""`assay validate`: what files are, and what is wrong with them."""

import json
import os
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from cli.counts import counts_of
from schemas.dialects import Kind, Reading, read
from schemas.dialects.parsing import MAX_BYTES
from schemas.findings import Finding, Level
from schemas.suite import Suite
from service.files import resolve_files
from service.skills import Withheld

EXAMPLES = """
Examples:

  assay validate my-skill/evals/evals.json

  assay validate my-skill my-skill-workspace

  assay validate my-skill --json | jq 'select(.ok | not)'
"""

_COLOURS = {Level.ERROR: "bold red", Level.WARNING: "yellow", Level.NOTE: "dim"}
# Folders that hold other people's files.
_SKIPPED = {"node_modules", "__pycache__", "venv"}


@dataclass(frozen=True)
class Seen:
    """One file that was looked at; no reading when it could not be opened."""

    file: str
    reading: Reading | None
    findings: tuple[Finding, ...]
    asked_for: bool = False  # by its own name, not by that of a folder

    @property
    def unknown(self) -> bool:
        """Whether it is somebody else's JSON, of which folders are full."""
        return any(finding.code == "unknown_document" for finding in self.findings)

    @property
    def kind(self) -> Kind:
        return self.reading.kind if self.reading else Kind.UNKNOWN

    @property
    def ok(self) -> bool:
        return not any(finding.level is Level.ERROR for finding in self.findings)


def validate(
    paths: Annotated[list[Path], typer.Argument(metavar="PATH...", help="Files, or folders to look through.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per file and line.")] = False,
) -> None:
    """Say what files are, in which dialect, and what is wrong with them and where.

    Exit code 0: no errors. 1: errors. 2: nothing there that could be read.
    """
    opened = [seen for path in paths for seen in _look(path)]
    looked = [seen for seen in opened if seen.asked_for or not seen.unknown]
    if as_json:
        for seen in looked:
            print(json.dumps(_as_object(seen), ensure_ascii=False))
    else:
        _print(looked, len(opened) - len(looked))
    raise typer.Exit(_exit_code(looked))


def _look(path: Path) -> Iterator[Seen]:
    """One file, or all JSON files below a folder."""
    if path.is_dir():
        yield from (_look_at(file) for file in _json_files(path))
    else:
        yield replace(_look_at(path), asked_for=True)


def _json_files(folder: Path) -> Iterator[Path]:
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED and not name.startswith("."))
        for name in sorted(files):
            path = Path(parent, name)
            if name.lower().endswith(".json") and not path.is_symlink():
                yield path


def _look_at(path: Path) -> Seen:
    name = str(path).encode("utf-8", "backslashreplace").decode()
    try:
        data = _bytes_of(path)
    except OSError as error:
        message = f"cannot be opened: {error.strerror or error}".lower()
        return Seen(name, None, (Finding(level=Level.ERROR, path="", message=message, code="not_opened"),))
    reading = read(data)
    return Seen(name, reading, (*reading.findings, *_file_findings(reading, path, data)))


def _bytes_of(path: Path) -> bytes:
    """The content, or as much of it as shows that it is too much; never waits for a pipe."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError("not a regular file")
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def _file_findings(reading: Reading, path: Path, data: bytes) -> Iterator[Finding]:
    """Input files that are not there or that no agent may have, when the suite stands in its skill."""
    skill = path.resolve().parent.parent
    if not isinstance(reading.document, Suite) or not (skill / "SKILL.md").is_file():
        return
    withheld = Withheld(skill, data)
    spelled = next((key for key in reading.document.keys if key in ("evals", "cases")), "")
    for index, case in enumerate(reading.document.cases):
        _, findings = resolve_files(case.files, skill, at=f"{spelled}[{index}].files", refuse=withheld)
        yield from findings


def _as_object(seen: Seen) -> dict[str, object]:
    dialect = seen.reading.dialect if seen.reading else None
    findings = [
        {"level": one.level, "path": one.path, "message": one.message, "code": one.code} for one in seen.findings
    ]
    return {"file": seen.file, "kind": seen.kind, "dialect": dialect, "ok": seen.ok, "findings": findings}


def _exit_code(looked: list[Seen]) -> int:
    if not any(seen.reading for seen in looked):
        return 2
    return 0 if all(seen.ok for seen in looked) else 1


def _print(looked: list[Seen], skipped: int) -> None:
    # soft_wrap: a finding stays on one line, whatever the width, for grep and for editors.
    console = Console(highlight=False, soft_wrap=True)
    for seen in looked:
        console.print(_headline(seen))
        for finding in seen.findings:
            console.print(_line(seen, finding))
    console.print(_summary(looked))
    if skipped:
        console.print(f"{skipped} other JSON file{'' if skipped == 1 else 's'} skipped", style="dim")


def _headline(seen: Seen) -> Text:
    line = Text(_harmless(seen.file), style="bold")
    dialect = seen.reading.dialect if seen.reading else None
    line.append(f"  {seen.kind}{f' ({dialect})' if dialect else ''}", style="not bold cyan")
    document = seen.reading.document if seen.reading else None
    if document is not None:
        line.append(f"  {counts_of(document)}", style="not bold")
    return line


def _line(seen: Seen, finding: Finding) -> Text:
    line = Text(f"  {finding.level:<7}  ", style=_COLOURS[finding.level])
    line.append(_harmless(f"{seen.file}:{finding.path}  {finding.message}"), style="default not bold not dim")
    return line


def _harmless(text: str) -> str:
    """Somebody's words without what would move the cursor or break the line."""
    return "".join(letter if letter.isprintable() else " " for letter in text)


def _summary(looked: list[Seen]) -> Text:
    levels = Counter(finding.level for seen in looked for finding in seen.findings)
    if not looked:
        return Text("nothing here that we know", style="bold red")
    good = sum(seen.ok for seen in looked)
    counts = ", ".join(f"{levels[level]} {level}{'' if levels[level] == 1 else 's'}" for level in Level)
    text = f"{len(looked)} file{'' if len(looked) == 1 else 's'}, {good} without errors: {counts}"
    return Text(text, style="bold green" if good == len(looked) else "bold red")
