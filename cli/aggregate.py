"""`assay aggregate`: benchmark, feedback and gates for a folder of runs, without a service."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from service.aggregation.benchmark import Aggregates
from service.aggregation.gates import GateReport, Gates, judge_gates
from service.aggregation.junit import write_junit
from service.aggregation.markdown import pull_request_summary
from service.aggregation.paired import Verdict
from service.aggregation.records import Options
from service.errors import BadInput
from service.workspaces.aggregating import FolderRequest, aggregate_folder, write_folder

SHOWN_WARNINGS = 10


def aggregate(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="a skill-creator workspace or one of its iterations")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="write benchmark.json here instead of DIR")
    ] = None,
    suite: Annotated[
        Path | None, typer.Option(help="the suite's evals.json: rubric weights, required criteria")
    ] = None,
    skill_name: Annotated[str | None, typer.Option(help="the skill's name, if the folder does not tell")] = None,
    skill_path: Annotated[str | None, typer.Option(help="the skill's folder, for the record")] = None,
    treatment: Annotated[str | None, typer.Option(help="the configuration on trial, if its name does not tell")] = None,
    control: Annotated[str | None, typer.Option(help="the configuration it is compared with")] = None,
    margin: Annotated[float, typer.Option(min=0.001, max=0.5, help="a difference below this does not matter")] = 0.05,
    fail_under: Annotated[float | None, typer.Option(help="gate: the treatment's score must reach this")] = None,
    min_delta: Annotated[float | None, typer.Option(help="gate: the difference must reach this")] = None,
    no_regression: Annotated[bool, typer.Option("--no-regression", help="gate: not worse by the margin")] = False,
    require_verdict: Annotated[Verdict | None, typer.Option(help="gate: the verdict must be this")] = None,
    junit: Annotated[Path | None, typer.Option(metavar="FILE", help="write gates and cases as JUnit XML")] = None,
    summary: Annotated[Path | None, typer.Option(metavar="FILE", help="write one screen for a pull request")] = None,
) -> None:
    """Aggregate a folder of runs: benchmark.json, benchmark.md and eval_feedback_aggregate.json.

    Exit codes: 0 done and every gate passed, 1 a gate failed, 2 a gate is undecided, 3 the folder cannot be used.
    """
    options = Options(margin=margin)
    request = FolderRequest(folder, suite, skill_name, skill_path, treatment, control, options)
    found = aggregate_folder(request)
    gates = judge_gates(found.aggregates, Gates(fail_under, min_delta, no_regression, require_verdict))
    written = write_folder(found, output)
    if junit is not None:
        written.append(_write_junit(found.aggregates, gates, junit))
    if summary is not None:
        written.append(_write_text(summary, pull_request_summary(found.aggregates, gates)))
    _tell(found.aggregates, gates, written)
    found.aggregates.close()
    raise typer.Exit(gates.exit_code)


def _write_junit(found: Aggregates, gates: GateReport, path: Path) -> Path:
    try:
        with path.open("wb") as out:
            write_junit(found, gates, out)
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror or error}") from error
    return path


def _write_text(path: Path, text: str) -> Path:
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise BadInput(f"{path} cannot be written: {error.strerror or error}") from error
    return path


def _tell(found: Aggregates, gates: GateReport, written: list[Path]) -> None:
    _say(found.verdict_sentence)
    _say(f"{found.coverage['counted']} of {found.coverage['planned']} runs count.")
    for gate in gates.results:
        _say(f"{gate.state.value}: {gate.name}: {gate.sentence}")
    for warning in found.warnings[:SHOWN_WARNINGS]:
        print(f"warning: {printable(warning)}", file=sys.stderr)
    if len(found.warnings) > SHOWN_WARNINGS:
        print(f"warning: {len(found.warnings) - SHOWN_WARNINGS} more, listed in benchmark.json", file=sys.stderr)
    _say("wrote " + ", ".join(map(str, written)))


def _say(text: str) -> None:
    print(printable(text))


def printable(text: str) -> str:
    """Foreign text for a terminal: no control characters, so nothing it says is obeyed."""
    return "".join(letter if letter.isprintable() else "\ufffd" for letter in text)
