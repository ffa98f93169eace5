"""`assay submit`: hand in a batch and go on with your day."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.connection import open_desk
from cli.options import (
    Against,
    AsJson,
    Baseline,
    Command,
    Data,
    Evals,
    JudgeModel,
    Model,
    Runner,
    Runs,
    Server,
    Set,
    batch_settings,
)

EXAMPLES = """
Examples:

  assay submit my-skill --server http://127.0.0.1:8080 --runs 5 --model claude-sonnet-5-5

  assay submit my-skill.zip --evals evals.json --dry-run
"""


def submit(
    skill: Annotated[Path, typer.Argument(help="The folder that holds SKILL.md, or an archive of it.")],
    evals: Evals = None,
    runs: Runs = None,
    baseline: Baseline = None,
    against: Against = None,
    runner: Runner = None,
    command: Command = None,
    model: Model = None,
    judge_model: JudgeModel = None,
    others: Set = None,
    priority: Annotated[int, typer.Option(help="Higher goes first inside the team.")] = 0,
    max_open: Annotated[int | None, typer.Option(min=1, help="Most runs of the batch open at once.")] = None,
    key: Annotated[str | None, typer.Option(help="The same key and content give the same batch.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would find and take.")] = False,
    as_json: AsJson = False,
    server: Server = None,
    data: Data = None,
) -> None:
    """Submit a batch to a server, or to the data folder; prints its id."""
    settings = batch_settings(runs, baseline, runner, command, model, judge_model, others)
    with open_desk(server, data) as desk:
        answer = desk.submit(
            skill,
            evals=evals,
            settings=settings,
            against=against,
            idempotency_key=key,
            priority=priority,
            max_open=max_open,
            dry_run=dry_run,
        )
    if as_json:
        print(json.dumps(answer, indent=2))
        return
    tell_findings(answer["findings"], also_notes=dry_run)
    if dry_run:
        _tell_preview(answer)
    else:
        typer.echo(f"batch {answer['batch_id']}: {answer['runs']} runs, version {answer['version']}", err=True)
        tell_cost(answer.get("estimate"))
        print(answer["batch_id"])
        if desk.is_only_a_queue:
            typer.echo(f"it waits for workers: {_workers(skill)}", err=True)


def _workers(skill: Path) -> str:
    """Who works a batch of the data folder off; `assay run` wants a folder."""
    return f"assay run {skill} --resume works it off, or assay serve" if skill.is_dir() else "assay serve works it off"


def tell_findings(findings: list[dict[str, str]], also_notes: bool = False) -> None:
    """Say what was found."""
    for finding in findings:
        if finding["level"] != "note" or also_notes:
            typer.echo(f"{finding['level']}  {finding['path']}  {finding['message']}", err=True)


def tell_cost(estimate: dict[str, Any] | None) -> None:
    """Say what a batch will cost, as far as that is known."""
    if estimate is None:
        return
    cost = estimate["cost_usd"]
    words = f"{cost['low']:.2f} to {cost['high']:.2f} USD" if cost else "not known, for want of a price or of a model"
    typer.echo(f"estimated cost: {words}", err=True)


def _tell_preview(answer: dict[str, object]) -> None:
    if not answer["is_acceptable"]:
        print("would be refused")
        raise typer.Exit(3)
    print(f"would be accepted\n{json.dumps(answer['estimate'], indent=2)}")
