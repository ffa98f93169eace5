"""The files of runs, wherever they are kept."""

import json
from collections.abc import Iterable, Iterator
from typing import IO, Protocol

from service.aggregation.records import RunRecord
from service.errors import BadInput
from service.workspaces.folder import Folder

_DOCUMENTS = frozenset({"grading.json", "structural.json", "timing.json", "run.json", "eval_metadata.json"})


class Artifacts(Protocol):
    """Where an export or a report takes the files of a run from: transcript.md, outputs/report.md, …"""

    def names(self, run: RunRecord) -> Iterable[str]:
        """The names of a run's files, with / between folders."""

    def open(self, run: RunRecord, name: str) -> IO[bytes]:
        """One of them, for reading."""


class FolderArtifacts:
    """The files of runs that were read from a workspace."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def names(self, run: RunRecord) -> Iterator[str]:
        """Transcript, notes and outputs; not the documents we read ourselves, nor copies an export made."""
        root = self._folder.root / run.paths["folder"]
        if not root.is_dir():
            return
        copies = {f"outputs/{name}" for name in self._copies(run)}
        for path in self._folder.files_below(root):
            name = path.relative_to(root).as_posix()
            is_own = "/" not in name or name.startswith("outputs/")
            if is_own and name not in _DOCUMENTS and name not in copies:
                yield name

    def open(self, run: RunRecord, name: str) -> IO[bytes]:
        """A file of the run's folder."""
        path = self._folder.root / run.paths["folder"] / name
        if not self._folder.holds(path):
            raise FileNotFoundError(name)
        return path.open("rb")

    def _copies(self, run: RunRecord) -> list[str]:
        try:
            data = self._folder.bytes_of(self._folder.root / run.paths["folder"] / "run.json")
            found = json.loads(data) if data else {}
        except (BadInput, ValueError, RecursionError):
            return []
        copies = found.get("copies") if isinstance(found, dict) else None
        return [name for name in copies if isinstance(name, str)] if isinstance(copies, list) else []
