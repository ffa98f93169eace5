"""The tier `none`: no protection at all, by name only; still limited, and still gone afterwards."""

from pathlib import Path

from service.sandbox.folders import lent_folders
from service.sandbox.launched import Confinement, run_launched
from service.sandbox.port import Command, Finished, SandboxFailed


class Plain:
    """Runs commands as ourselves, in their real folders; `writable` and `network` are wishes here."""

    tier = "none"

    def __init__(self, work: Path | None = None) -> None:
        self._work = work

    def place(self, host: Path, inside: str) -> str:  # noqa: ARG002  nothing can be moved
        return str(host.resolve())

    def run(self, command: Command) -> Finished:
        try:
            with lent_folders(command, None, self._work) as folders:
                return run_launched(command, folders, Confinement())
        except OSError as error:
            raise SandboxFailed(f"the sandbox cannot use {error.filename}: {error.strerror}") from error
