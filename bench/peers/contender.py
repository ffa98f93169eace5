"""What a measurement asks of a contender."""

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from processes import cpu_seconds, kill
from work import Work


class Contender(Protocol):
    """One tool doing the work; a new one for every measurement."""

    name: str
    script: dict[str, Any]  # of the simulator

    def prepare(self, work: Work, folder: Path, url: str) -> None:
        """Write its files, start what stands ready before work comes."""

    def launch(self) -> None:
        """Begin; gives control back at once."""

    def is_done(self) -> bool:
        """Whether the results are there; raises RuntimeError when they never will be."""

    def pids(self) -> list[int]:
        """The heads of everything that belongs to it."""

    def cpu_seconds(self) -> float:
        """What all of it used so far."""

    def kill(self) -> None:
        """SIGKILL to everything at once."""

    def resume(self) -> None:
        """After a kill: go on as its handbook says."""

    def result(self) -> dict[str, Any]:
        """What it says it did; `scored` is the number of cases with a verdict."""

    def saved(self) -> dict[str, int]:
        """After a kill, before going on: the calls whose results it has kept, as far as it can say."""

    def remove(self) -> None:
        """End what is left."""


class CommandLine:
    """A contender that is one program, which ends when the work is done."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.folder = Path()
        self.environment: dict[str, str] = {}
        self._used = 0.0  # by processes that ended
        self._ended: int | None = None

    def start(self, argv: Sequence[str | Path], added: Mapping[str, str]) -> None:
        """Run the program with an environment of its own."""
        self._ended = None
        with (self.folder / "output.log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(word) for word in argv],
                cwd=self.folder,
                env={"PATH": os.environ["PATH"], "HOME": str(self.folder), **added},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def is_done(self) -> bool:
        """Whether the program ended; its own word for success is asked by `result`."""
        if self._ended is None and self.process is not None:
            # wait4 alone tells what a process used that is no longer there to be looked at.
            pid, status, usage = os.wait4(self.process.pid, os.WNOHANG)
            if pid:
                self._ended = self.process.returncode = os.waitstatus_to_exitcode(status)
                self._used += usage.ru_utime + usage.ru_stime
        return self._ended is not None

    def pids(self) -> list[int]:
        """The program, while it runs."""
        return [self.process.pid] if self.process and self._ended is None else []

    def cpu_seconds(self) -> float:
        """Of the program and those before it."""
        return self._used + cpu_seconds(self.pids())

    def kill(self) -> None:
        """The program and everything below it."""
        self._used += cpu_seconds(self.pids())
        kill(self.pids())
        if self.process:
            self.process.wait(10)
        self._ended = -9

    def remove(self) -> None:
        """The same, at the end."""
        if self._ended is None:
            self.kill()

    def saved(self) -> dict[str, int]:
        """A program keeps that to itself."""
        return {}

    def output(self) -> str:
        """The end of what it printed."""
        return (self.folder / "output.log").read_text(errors="replace")[-1500:]
