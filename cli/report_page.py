"""`assay report-folder`: the HTML report of a folder of runs, without a service."""

from pathlib import Path
from typing import Annotated

import typer

from service.aggregation.records import Options
from service.reporting.folder import write_folder_report
from service.workspaces.aggregating import FolderRequest


def report_folder(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="a skill-creator workspace or one of its iterations")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="the page to write")] = Path(
        "report.html"
    ),
    suite: Annotated[
        Path | None, typer.Option(help="the suite's evals.json: rubric weights, required criteria")
    ] = None,
    skill_name: Annotated[str | None, typer.Option(help="the skill's name, if the folder does not tell")] = None,
    treatment: Annotated[str | None, typer.Option(help="the configuration on trial, if its name does not tell")] = None,
    control: Annotated[str | None, typer.Option(help="the configuration it is compared with")] = None,
    margin: Annotated[float, typer.Option(min=0.001, max=0.5, help="a difference below this does not matter")] = 0.05,
) -> None:
    """Write one self-contained page about a folder of runs: verdict, cases, costs, items and every run."""
    options = Options(margin=margin)
    request = FolderRequest(folder, suite, skill_name, None, treatment, control, options)
    written = write_folder_report(request, output)
    print(f"wrote {written}")
