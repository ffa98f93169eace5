"""`assay regrade`: grade the artifacts of an old batch anew, and show old beside new."""

import io
import json
from collections import deque
from pathlib import Path
from typing import Annotated, Any

import typer

from cli.connection import open_desk
from cli.desk import Desk, suite_bytes
from cli.given import started, wanted
from cli.options import BatchId, Data, Server
from cli.regrade_table import regrade_table
from cli.run import carry_out, decided
from cli.simulate import MODEL, simulated
from service import log
from service.settings import Settings, embedded_settings, load_settings

EXAMPLES = """
Examples:

  assay regrade 01kh0000000000000000000000 --evals my-skill/evals/evals.json

  assay regrade 01kh0000000000000000000000 --judge-model claude-opus-5-5 --server http://127.0.0.1:8080
"""


def regrade(
    batch: BatchId,
    evals: Annotated[Path | None, typer.Option(help="The suite; the batch's own by default.")] = None,
    judge_model: Annotated[str | None, typer.Option(help="Model of the judge; the batch's own by default.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one final JSON object.")] = False,
    server: Server = None,
    data: Data = None,
) -> None:
    """Grade an old batch's artifacts anew, as a new batch: nothing is executed, and only what changed is judged."""
    settings = {"judge_model": judge_model} if judge_model else {}
    with open_desk(server, data) as desk:
        old = desk.batch(batch)
        if not _is_embedded(desk):
            raise typer.Exit(_ask(desk, batch, evals, settings, as_json))
    raise typer.Exit(_here(embedded_settings(data=data), old, evals, settings, as_json))


def _is_embedded(desk: Desk) -> bool:
    """Whether the batches are in a data folder of this machine, where nobody works but us."""
    from cli.local import Local

    return isinstance(desk, Local) and load_settings().database_url is None


def _ask(desk: Desk, batch: str, evals: Path | None, settings: dict[str, Any], as_json: bool) -> int:
    """Let the workers of a server do it, and wait."""
    from cli.submit import tell_findings

    accepted = desk.regrade(batch, evals, settings)
    tell_findings(accepted["findings"])
    new = accepted["batch_id"]
    typer.echo(f"batch {new}: {accepted['runs']} given runs of batch {batch}", err=True)
    last: dict[str, Any] = deque(desk.watch(new), maxlen=1).pop()
    document = _document(desk, new)
    if as_json:
        said = {"batch_id": new, "state": last["state"], "outcomes": last["outcomes"], "regrade": document}
        print(json.dumps(said))
    else:
        print("\n".join([f"batch {new} {last['state']}", *regrade_table(document)]))
    return 0 if decided(last["outcomes"]) else 2


def _document(desk: Desk, batch: str) -> dict[str, Any]:
    out = io.BytesIO()
    desk.save(batch, "regrade", out)
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def _here(settings: Settings, old: dict[str, Any], evals: Path | None, said: dict[str, Any], as_json: bool) -> int:
    """Do it in this process."""
    from service.regrade import RegradeRequest

    log.configure("warning" if settings.log_level == "info" else settings.log_level, settings.log_format)
    request = RegradeRequest(old["id"], settings.team, suite_bytes(evals), said)

    def begin(parts: Any) -> str:
        return started(parts, parts.regrade.accept(request), f"batch {old['id']}")

    asked = wanted(Path(old["id"]), as_json)
    with simulated(settings, _models(old, said), evals) as ready:
        return carry_out(ready, asked, begin, f"assay serve --data {settings.data}")


def _models(old: dict[str, Any], said: dict[str, Any]) -> list[str | None]:
    """Who judges; a simulated judge, whatever it is called, needs the simulator."""
    judge = said.get("judge_model") or old["settings"]["judge_model"]["value"]
    return [MODEL if judge and judge.startswith(MODEL) else judge]
