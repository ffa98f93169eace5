"""`assay import`: bring a workspace in with what was already decided about its runs."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.given import started, wanted
from cli.run import carry_out
from service import log
from service.settings import embedded_settings

EXAMPLES = """
Examples:

  assay import my-skill-workspace --skill my-skill

  assay import my-skill-workspace/iteration-1 --evals my-skill/evals/evals.json --json
"""


def import_workspace(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A skill-creator workspace or one of its iterations.")],
    evals: Annotated[Path | None, typer.Option(help="The suite; the workspace's own by default.")] = None,
    skill: Annotated[Path | None, typer.Option(help="The folder that holds SKILL.md, if it is known.")] = None,
    treatment: Annotated[
        str | None, typer.Option(help="The configuration on trial, if its name does not tell.")
    ] = None,
    control: Annotated[str | None, typer.Option(help="The configuration it is compared with.")] = None,
    data: Annotated[Path | None, typer.Option(help="The data folder.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one final JSON object.")] = False,
) -> None:
    """Import graded runs as a batch of their own: gradings stay as given, figures are made anew, reviews come along."""
    from service.take_in import TakeInRequest

    settings = embedded_settings(data=data)
    log.configure("warning" if settings.log_level == "info" else settings.log_level, settings.log_format)
    request = TakeInRequest(folder, settings.team, evals, skill, treatment, control)

    def begin(parts: Any) -> str:
        return started(parts, parts.take_in.take(request), str(folder))

    raise typer.Exit(carry_out(settings, wanted(folder, as_json), begin, f"assay serve --data {settings.data}"))
