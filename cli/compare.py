"""`assay compare`: two batches, or two versions of a skill, compared blind on the same suite."""

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.connection import open_desk
from cli.desk import Desk
from cli.options import AsJson, Data, Server
from schemas.states import ComparisonState
from service.documents import to_json
from service.errors import BadInput, Unavailable

ENDED = (ComparisonState.FINISHED, ComparisonState.FAILED)
LOOK_SECONDS = 1.0

EXAMPLES = """
Examples:

  assay compare --skill my-skill v0 v1

  assay compare 01k3mz7a1t… 01k3mz8w5t… --judge-model claude-opus-5 -o comparison

  assay compare 01k3mz8w5t…:without_skill 01k3mz8w5t…:with_skill
"""


def compare(
    champion: Annotated[str, typer.Argument(help="The old side: BATCH, BATCH:CONFIGURATION, or a version.")],
    challenger: Annotated[str, typer.Argument(help="The new side, named in the same way.")],
    skill: Annotated[str | None, typer.Option(help="Compare versions of this skill by their newest batches.")] = None,
    judge_model: Annotated[str | None, typer.Option(help="Who compares; the challenger's judge if not said.")] = None,
    analysis: Annotated[bool, typer.Option(help="Also say why the winner won.")] = True,
    max_cost_usd: Annotated[float | None, typer.Option(min=0.0, help="What the comparison may cost.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="DIR", help="Write the files here.")] = None,
    as_json: AsJson = False,
    server: Server = None,
    data: Data = None,
) -> None:
    """Compare two sides of a suite blind: every pair of runs in both orders, then why the winner won."""
    wanted: dict[str, Any] = {"champion": champion, "challenger": challenger, "skill": skill}
    wanted |= {"judge_model": judge_model, "analysis": analysis, "max_cost_usd": max_cost_usd}
    with open_desk(server, data) as desk:
        accepted = desk.compare(wanted)
        typer.echo(f"comparison {accepted['id']}", err=True)
        ended = _wait(desk, accepted["id"])
        if ended["state"] == ComparisonState.FAILED:
            raise Unavailable(f"comparison {ended['id']} failed: {ended['error']}")
        summary = json.loads(desk.comparison_file(ended["id"], "summary.json"))
        if output is not None:
            _write(desk, ended, output)
    print(json.dumps({**ended, "summary": summary}, indent=2) if as_json else _told(summary))
    raise typer.Exit(0 if ended["result"] else 2)


def _wait(desk: Desk, comparison_id: str) -> dict[str, Any]:
    """Until it has ended; without a server that is our own work."""
    while True:
        desk.carry_out(comparison_id)
        found = desk.comparison(comparison_id)
        if found["state"] in ENDED:
            return found
        time.sleep(LOOK_SECONDS)


def _write(desk: Desk, comparison: dict[str, Any], folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in comparison["files"]:
            (folder / name).write_bytes(desk.comparison_file(comparison["id"], name))
        (folder / "assignment.json").write_bytes(to_json(comparison["assignment"]))
    except OSError as error:
        raise BadInput(f"{folder} cannot be written: {error.strerror or error}") from error
    typer.echo(f"wrote {len(comparison['files']) + 1} files to {folder}", err=True)


def _told(summary: dict[str, Any]) -> str:
    """The result, what it rests on, and whether the judge can be trusted with the question."""
    pairs, rate, bias = summary["pairs"], summary["win_rate"], summary["bias"]
    lines = [summary["sentence"]]
    if rate is not None:
        known = rate["ci_low"] is not None
        interval = f", 95 % interval {_percent(rate['ci_low'])} to {_percent(rate['ci_high'])}" if known else ""
        lines.append(f"win rate over {rate['cases']} cases: {_percent(rate['mean'])}{interval}")
    counts = f"{pairs['compared']} of {pairs['planned']} pairs compared"
    lines.append(f"{counts}; {pairs['incomplete']} incomplete, {pairs['excluded']} left out for failed runs")
    steady = f"{_percent(bias['order_consistency'])} of the pairs alike in both orders"
    lines.append(f"judge: {steady}; the first shown won {_percent(bias['first_position_rate'])}")
    lines += [f"no analysis: {summary['analysis']['reason']}"] if not summary["analysis"]["made"] else []
    lines += ["the judge was the simulator: nothing here was decided by a model"] if summary["simulated"] else []
    return "\n".join(lines)


def _percent(share: float | None) -> str:
    return "unknown" if share is None else f"{100 * share:.0f} %"
