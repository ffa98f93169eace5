"""`assay convert`: a document in another dialect."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from schemas.conversion import NotWritten, convert
from schemas.dialects import Dialect, Reading, read
from schemas.dialects.parsing import MAX_BYTES
from schemas.findings import Level
from service.errors import BadInput

EXAMPLES = """
Examples:

  assay convert evals.json --to skill_evaluator

  assay convert evals/evals.json --to cases -o cases.json
"""

_TARGETS = (Dialect.SKILL_EVALUATOR, Dialect.SKILL_CREATOR, Dialect.CASES)


def convert_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A document of any dialect.")],
    to: Annotated[str, typer.Option("--to", help=f"One of {', '.join(_TARGETS)}.", metavar="DIALECT")],
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write here instead of printing.")] = None,
) -> None:
    """Write a document in another dialect; what has no place there is told on stderr."""
    reading = _read(file)
    try:
        conversion = convert(reading, _target(to))
    except NotWritten as error:
        raise BadInput(f"{file} cannot be converted: {error}") from error
    for loss in conversion.losses:
        print(f"warning  {file}:{loss.path}  {loss.message}", file=sys.stderr)
    _deliver(json.dumps(conversion.value, indent=2, ensure_ascii=False) + "\n", output)


def _target(name: str) -> Dialect:
    if name not in _TARGETS:
        raise BadInput(f"no dialect to write is called {name!r}; take one of {', '.join(_TARGETS)}")
    return Dialect(name)


def _read(file: Path) -> Reading:
    try:
        with file.open("rb") as opened:
            reading = read(opened.read(MAX_BYTES + 1))
    except OSError as error:
        raise BadInput(f"cannot open {file}: {error.strerror}") from error
    for finding in reading.findings:
        if finding.level is Level.ERROR:
            raise BadInput(f"{file}:{finding.path} {finding.message}; see `assay validate {file}`")
    return reading


def _deliver(text: str, output: Path | None) -> None:
    if output is None:
        print(text, end="")
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"cannot write {output}: {error.strerror}") from error
