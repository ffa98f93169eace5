"""`assay status|watch|cancel|pause|resume|retry|results|export|report`: what becomes of batches."""

import json
import tempfile
import zipfile
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.connection import open_desk
from cli.desk import Desk, Json, written
from cli.gating import Asked, FailUnder, Junit, MinDelta, NoRegression, RequireVerdict, Summary, judge, tell
from cli.options import AsJson, BatchId, Data, Server
from schemas.states import BatchState, Outcome
from service.aggregation.gates import Gates
from service.errors import BadInput

_RESULTS = {
    "benchmark": "benchmark.json",
    "benchmark.md": "benchmark.md",
    "feedback": "eval_feedback_aggregate.json",
    "report": "report.html",
}


def status(
    batch: Annotated[str | None, typer.Argument(metavar="[BATCH]", help="One batch; else the newest 20.")] = None,
    as_json: AsJson = False,
    server: Server = None,
    data: Data = None,
) -> None:
    """Say how far a batch is, or list the newest ones."""
    with open_desk(server, data) as desk:
        found = [desk.batch(batch)] if batch else _newest(desk)
    if as_json:
        print(json.dumps(found[0] if batch else found, indent=2))
        return
    for one in found:
        print(_line(one))


def _newest(desk: Desk) -> list[dict[str, Any]]:
    found = []
    for one in desk.batches():
        found.append(one)
        if len(found) == 20:
            break
    return found


def _line(batch: dict[str, Any]) -> str:
    head = f"{batch['id']}  {batch['state']:<11} {batch['skill']} {batch['version']}"
    if "progress" not in batch:
        return head
    progress = batch["progress"]
    outcomes = " ".join(f"{name} {count}" for name, count in sorted(progress["outcomes"].items()))
    left = f", {progress['eta_seconds']:.0f} s left" if progress["eta_seconds"] is not None else ""
    cost = f", {batch['cost_usd']:.2f} USD" if batch["cost_usd"] else ""
    return f"{head}  {progress['settled']}/{progress['total']} settled  {outcomes}{cost}{left}"


def watch(batch: BatchId, server: Server = None, data: Data = None) -> None:
    """Show a batch's progress until it ends; exit code 2 if no run could be scored."""
    from cli.progress import ProgressView

    last: dict[str, Any] = {}
    with open_desk(server, data) as desk, ProgressView() as view:
        for last in desk.watch(batch):
            view.show(_status(last))
    outcomes = last.get("outcomes", {})
    print(f"batch {batch} {last.get('state', 'unknown')}")
    for name, count in sorted(outcomes.items()):
        print(f"  {name:15} {count}")
    raise typer.Exit(0 if outcomes.get(Outcome.SCORED, 0) + outcomes.get(Outcome.GATED, 0) else 2)


def _status(progress: dict[str, Any]) -> Any:
    """What the view shows: the counts; the rest of the row is not looked at."""
    from service.batches import Status
    from service.storage.rows import BatchRow, Progress

    state = BatchState(progress["state"])
    unknown: dict[str, Any] = {"settings": {}, "inputs": {}, "priority": 0, "max_open": None, "cancelled_at": None}
    unknown |= {"aggregate": None, "error": None, "created_at": 0.0, "started_at": None, "finished_at": None}
    names: dict[str, Any] = {"team_id": "", "suite_id": "", "skill_version_id": "", "control_version_id": None}
    row = BatchRow(id=progress["batch_id"], state=state, iteration=0, **names, **unknown)
    return Status(row, Progress(progress["stages"], progress["outcomes"]))


def cancel(batch: BatchId, server: Server = None, data: Data = None) -> None:
    """Stop everything of a batch that has not ended; what is finished is aggregated."""
    with open_desk(server, data) as desk:
        print(_line(desk.cancel(batch)))


def pause(batch: BatchId, server: Server = None, data: Data = None) -> None:
    """Let no waiting run of a batch start."""
    with open_desk(server, data) as desk:
        print(_line(desk.pause(batch)))


def resume(batch: BatchId, server: Server = None, data: Data = None) -> None:
    """Let a paused batch go on."""
    with open_desk(server, data) as desk:
        print(_line(desk.resume(batch)))


def retry(
    batch: BatchId,
    outcome: Annotated[list[Outcome] | None, typer.Option(help="Only runs that ended so; may be repeated.")] = None,
    max_cost_usd: Annotated[float | None, typer.Option(min=0.01, help="What the batch may cost from now on.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, help="What the batch may use from now on.")] = None,
    server: Server = None,
    data: Data = None,
) -> None:
    """Continue runs that ended without a score at the stage that failed."""
    with open_desk(server, data) as desk:
        outcomes = [one.value for one in outcome] if outcome else None
        count = desk.retry(batch, outcomes, max_cost_usd, max_tokens)
    print(f"{count} runs go on")


def results(
    batch: BatchId,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="DIR", help="Write the files here.")] = None,
    fail_under: FailUnder = None,
    min_delta: MinDelta = None,
    no_regression: NoRegression = False,
    require_verdict: RequireVerdict = None,
    junit: Junit = None,
    summary: Summary = None,
    server: Server = None,
    data: Data = None,
) -> None:
    """Print what a batch comes to, or write the files of its aggregate into a folder; gates give the exit code."""
    asked = Asked(Gates(fail_under, min_delta, no_regression, require_verdict), junit, summary)
    with open_desk(server, data) as desk:
        _warn_if_interim(desk.batch(batch))
        if output is None:
            _print(desk, batch)
        else:
            _save_all(desk, batch, output)
        if asked.is_anything:
            gated = judge(desk, batch, asked)
            tell(gated)
            raise typer.Exit(gated["exit_code"])


def _warn_if_interim(found: Json) -> None:
    if found["state"] not in ("finished", "cancelled"):
        progress = found["progress"]
        done = f"{progress['settled']} of {progress['total']} runs are settled"
        typer.echo(f"interim: batch {found['id']} is {found['state']}, {done}", err=True)


def _print(desk: Desk, batch: str) -> None:
    out = typer.get_binary_stream("stdout")
    desk.save(batch, "benchmark.md", out)
    out.flush()


def _save_all(desk: Desk, batch: str, folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(f"{folder} cannot be made: {error.strerror or error}") from error
    for what, name in _RESULTS.items():
        _save(desk, batch, what, folder / name)


def export(
    batch: BatchId,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PATH", help="A folder, or FILE.zip; BATCH.zip if not said."),
    ] = None,
    server: Server = None,
    data: Data = None,
) -> None:
    """Write a batch as a skill-creator workspace, as a folder or zipped."""
    target = output or Path(f"{batch}.zip")
    with open_desk(server, data) as desk:
        if target.suffix == ".zip":
            _save(desk, batch, "export.zip", target)
        else:
            _unpack(desk, batch, target)


def _unpack(desk: Desk, batch: str, folder: Path) -> None:
    """Into a folder; an iteration that is there already is not written over."""
    with tempfile.TemporaryFile() as file:
        desk.save(batch, "export.zip", file)
        with zipfile.ZipFile(file) as archive:
            iteration = archive.namelist()[0].partition("/")[0]
            if (folder / iteration).exists():
                raise BadInput(f"{folder / iteration} is there already; choose another folder or remove it")
            try:
                archive.extractall(folder)
            except OSError as error:
                raise BadInput(f"{folder} cannot be written: {error.strerror or error}") from error
    print(f"wrote {folder / iteration}")


def report(
    batch: BatchId,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write.")] = Path(
        "report.html"
    ),
    server: Server = None,
    data: Data = None,
) -> None:
    """Write the page about a batch: verdict, cases, costs, items and runs; interim while it runs."""
    with open_desk(server, data) as desk:
        _warn_if_interim(desk.batch(batch))
        _save(desk, batch, "report", output)


def _save(desk: Desk, batch: str, what: str, path: Path) -> None:
    with written(path) as out:
        desk.save(batch, what, out)
    print(f"wrote {path}")
