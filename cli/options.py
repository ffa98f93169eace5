"""Options that several commands share, each worded once."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.simulate import MODEL
from service.errors import BadInput

# A model must not judge its own work, not even a simulated one.
SIMULATED_JUDGE = "simulated-judge"

Server = Annotated[str | None, typer.Option("--server", metavar="URL", help="The API; else the data folder.")]
Data = Annotated[Path | None, typer.Option("--data", help="The data folder, without a server.")]
BatchId = Annotated[str, typer.Argument(metavar="BATCH", help="The id of a batch.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]

Evals = Annotated[Path | None, typer.Option(help="The suite; evals/evals.json of the skill by default.")]
Runs = Annotated[int | None, typer.Option(min=1, help="Runs per case and configuration.")]
Baseline = Annotated[bool | None, typer.Option(help="Also run every case without the skill.")]
Against = Annotated[str | None, typer.Option(help="Compare with this earlier version instead: v0, v1, ...")]
Runner = Annotated[str | None, typer.Option(help="How cases are executed: command, messages, ...")]
Command = Annotated[str | None, typer.Option(help="Program of the command runner.")]
Model = Annotated[str | None, typer.Option(help="Model of the executor.")]
JudgeModel = Annotated[str | None, typer.Option(help="Model of the judge.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Any other setting of a batch, as max_cost_usd=5; repeatable."),
]


def batch_settings(
    runs: int | None,
    baseline: bool | None,
    runner: str | None,
    command: str | None,
    model: str | None,
    judge_model: str | None,
    others: list[str] | None = None,
) -> dict[str, Any]:
    """The settings of a batch that were said; whatever was not is for the suite and the installation to say."""
    said = {
        "runs_per_eval": runs,
        "baseline_comparison": baseline,
        "runner": runner,
        "command": command,
        "executor_model": model,
        "judge_model": judge_model or (SIMULATED_JUDGE if model == MODEL else None),
    }
    return {**_assigned(others or []), **{name: value for name, value in said.items() if value is not None}}


def _assigned(words: list[str]) -> dict[str, Any]:
    """NAME=VALUE; a value that reads as JSON is that, any other is text."""
    said = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise BadInput(f"--set {word}: write it as NAME=VALUE, as --set max_cost_usd=5")
        try:
            said[name.strip()] = json.loads(value)
        except ValueError:
            said[name.strip()] = value
    return said
