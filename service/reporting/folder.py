"""The report of a folder of runs, without a service."""

from pathlib import Path

from service.errors import BadInput
from service.reporting.page import write_report
from service.workspaces.aggregating import FolderRequest, aggregate_folder
from service.workspaces.artifacts import FolderArtifacts


def write_folder_report(request: FolderRequest, output: Path) -> Path:
    """Aggregate a workspace and write its page; the runs are gone through a second time for their details."""
    found = aggregate_folder(request)
    workspace = found.workspace
    records = workspace.records(found.aggregates.plan.arms)
    try:
        with output.open("wb") as out:
            write_report(found.aggregates, records, FolderArtifacts(workspace.folder), out)
    except OSError as error:
        raise BadInput(f"{output} cannot be written: {error.strerror or error}") from error
    found.aggregates.close()
    return output
