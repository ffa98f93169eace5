"""`assay check`: the structural checker without the service."""

import functools
import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from schemas.findings import Level
from schemas.metrics import Metrics
from schemas.structural import Structural
from schemas.suite import Case, Suite
from service.errors import BadInput, NotFound

_GATE = {True: (0, "passed"), False: (1, "failed"), None: (2, "undecided")}
_MAX_FILE_BYTES = 50_000_000


def check(
    outputs: Annotated[Path, typer.Argument(help="The folder with a run's outputs.")],
    evals: Annotated[Path, typer.Option(help="The suite (evals.json, any dialect).")],
    case: Annotated[str, typer.Option(help="The id of the case.")],
    transcript: Annotated[Path | None, typer.Option(help="The transcript; ../transcript.md by default.")] = None,
    metrics: Annotated[Path | None, typer.Option(help="metrics.json, for tool_used and tool_not_used.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="Write structural.json here.")] = None,
) -> None:
    """Check a run's outputs against a case's structural expectations.

    Exit code 0: the gate passed; 1: it failed; 2: a critical expectation could not be decided.
    """
    structural = _check(outputs, _case(evals, case), _transcript(outputs, transcript), _metrics(metrics))
    _print_lines(structural)
    _write(structural, output)
    code, word = _GATE[structural.gate_passed]
    print(f"gate {word}", file=sys.stderr)
    raise typer.Exit(code)


def _check(outputs: Path, case: Case, transcript: str | None, metrics: Metrics | None) -> Structural:
    from service.checks import Tools
    from service.checks import check as check_case
    from service.checks.engine import Engine
    from service.sandbox import open_sandbox
    from service.sandbox.reader import Reader
    from service.settings import Settings

    if not outputs.is_dir():
        raise NotFound(f"{outputs} is not a folder; name the folder with the run's outputs")
    tier = Settings().sandbox
    with Engine() as engine:
        tools = Tools(engine, functools.cache(lambda: open_sandbox(tier)))
        return check_case(case, Reader(outputs), transcript, metrics, tools, timeout_seconds=600)


def _case(evals: Path, wanted: str) -> Case:
    from schemas.dialects import read_suite

    reading = read_suite(_read(evals))
    errors = [finding for finding in reading.findings if finding.level is Level.ERROR]
    if errors or not isinstance(reading.document, Suite):
        first = f"{errors[0].path}: {errors[0].message}" if errors else "it is not a suite"
        raise BadInput(f"{evals} cannot be used: {first}; see assay validate")
    found = [case for case in reading.document.cases if str(case.id) == wanted]
    if len(found) != 1:
        known = ", ".join(str(case.id) for case in reading.document.cases[:20])
        raise NotFound(f"{evals} has {len(found)} cases with the id {wanted}; it has {known}")
    return found[0]


def _transcript(outputs: Path, transcript: Path | None) -> str | None:
    beside = outputs.resolve().parent / "transcript.md"
    path = transcript or (beside if beside.is_file() else None)
    return _read(path).decode("utf-8", "replace").replace("\r\n", "\n") if path else None


def _metrics(path: Path | None) -> Metrics | None:
    from schemas.dialects import read

    if path is None:
        return None
    reading = read(_read(path))
    if not isinstance(reading.document, Metrics):
        raise BadInput(f"{path} is not a metrics.json")
    return reading.document


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > _MAX_FILE_BYTES:
            raise BadInput(f"{path} has more than {_MAX_FILE_BYTES} bytes")
        return path.read_bytes()
    except OSError as error:
        raise NotFound(f"{path} cannot be read: {(error.strerror or 'unknown reason').lower()}") from error


def _print_lines(structural: Structural) -> None:
    words = {True: "pass", False: "FAIL", None: "????"}
    for checked in structural.expectations:
        critical = " (critical)" if checked.critical else ""
        print(f"{words[checked.passed]}  {checked.id}{critical}  {checked.text}: {checked.evidence}", file=sys.stderr)


def _write(structural: Structural, output: Path | None) -> None:
    from schemas.dialects import Dialect, write

    text = json.dumps(write(structural, Dialect.SKILL_EVALUATOR), indent=2, ensure_ascii=False) + "\n"
    if output is None:
        sys.stdout.write(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{output} cannot be written: {(error.strerror or 'unknown reason').lower()}") from error
