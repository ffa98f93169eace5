"""`assay submit`: hand in a batch and go on with your day."""

import json
from pathlib import Path
from typing import Annotated

import typer

from cli.connection import Data, Server, open_desk

EXAMPLES = """
Examples:

  assay submit my-skill --server http://127.0.0.1:8080 --runs 5 --model claude-sonnet-5-5

  assay submit my-skill.zip --evals evals.json --dry-run
"""


def submit(
    skill: Annotated[Path, typer.Argument(help="The folder that holds SKILL.md, or with --server an archive of it.")],
    evals: Annotated[Path | None, typer.Option(help="The suite; evals/evals.json of the skill by default.")] = None,
    runs: Annotated[int | None, typer.Option(min=1, help="Runs per case and configuration.")] = None,
    baseline: Annotated[bool | None, typer.Option(help="Also run every case without the skill.")] = None,
    against: Annotated[str | None, typer.Option(help="Compare with this earlier version instead: v0, v1, ...")] = None,
    runner: Annotated[str | None, typer.Option(help="How cases are executed: command, messages, ...")] = None,
    command: Annotated[str | None, typer.Option(help="Program of the command runner.")] = None,
    model: Annotated[str | None, typer.Option(help="Model of the executor.")] = None,
    judge_model: Annotated[str | None, typer.Option(help="Model of the judge.")] = None,
    priority: Annotated[int, typer.Option(help="Higher goes first inside the team.")] = 0,
    key: Annotated[str | None, typer.Option(help="The same key and content give the same batch.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would find and take.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")] = False,
    server: Server = None,
    data: Data = None,
) -> None:
    """Submit a batch to a server, or to the data folder; prints its id."""
    said = {
        "runs_per_eval": runs,
        "baseline_comparison": baseline,
        "runner": runner,
        "command": command,
        "executor_model": model,
        "judge_model": judge_model,
    }
    settings = {name: value for name, value in said.items() if value is not None}
    with open_desk(server, data) as desk:
        answer = desk.submit(skill, evals, settings, against, key, dry_run, priority)
    if as_json:
        print(json.dumps(answer, indent=2))
        return
    tell_findings(answer["findings"], also_notes=dry_run)
    if dry_run:
        _tell_preview(answer)
    else:
        typer.echo(f"batch {answer['batch_id']}: {answer['runs']} runs, version {answer['version']}", err=True)
        print(answer["batch_id"])


def tell_findings(findings: list[dict[str, str]], also_notes: bool = False) -> None:
    """Say what was found."""
    for finding in findings:
        if finding["level"] != "note" or also_notes:
            typer.echo(f"{finding['level']}  {finding['path']}  {finding['message']}", err=True)


def _tell_preview(answer: dict[str, object]) -> None:
    if not answer["is_acceptable"]:
        print("would be refused")
        raise typer.Exit(3)
    print(f"would be accepted\n{json.dumps(answer['estimate'], indent=2)}")
