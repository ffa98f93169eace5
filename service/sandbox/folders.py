"""The folders one command works in: lent to its user for as long as it runs."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from service.sandbox.ownership import hand_over, require_reachable, take_back
from service.sandbox.port import Command
from service.sandbox.scratch import scratch


@dataclass(frozen=True)
class Folders:
    """Where the command may write (the workspace only if it is writable)."""

    workspace: Path
    home: Path
    tmp: Path
    shared_memory: Path

    def written_by(self, command: Command) -> list[Path]:
        """Everything the command can fill."""
        return [*([self.workspace] if command.writable else []), self.home, self.tmp, self.shared_memory]


@contextmanager
def lent_folders(command: Command, uid: int | None, work: Path | None) -> Iterator[Folders]:
    """Fresh private folders and the command's own, given to its user and taken back at the end."""
    with scratch(work) as private:
        folders = Folders(
            workspace=command.workspace.resolve(),
            home=(command.home or _new(private / "home")).resolve(),
            tmp=(command.tmp or _new(private / "tmp")).resolve(),
            shared_memory=_new(private / "shm"),
        )
        if uid is not None:
            _lend(folders, command, uid)
        try:
            yield folders
        finally:
            for folder in filter(None, (command.workspace, command.home, command.tmp)):
                take_back(folder.resolve())


def _lend(folders: Folders, command: Command, uid: int) -> None:
    for path in (folders.workspace, folders.home, folders.tmp, *(mount.host for mount in command.mounts)):
        require_reachable(path, uid)
    for path in (folders.workspace, folders.home, folders.tmp, folders.shared_memory):
        hand_over(path, uid)


def _new(folder: Path) -> Path:
    folder.mkdir(mode=0o700)
    return folder
