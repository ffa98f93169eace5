"""What a sandbox is asked and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from service.errors import BadInput, Unavailable

# One argument of a program may have 128 KiB on Linux.
MAX_ARGUMENT_BYTES = 100_000

WORKSPACE = "/workspace"


class SandboxFailed(Unavailable):
    """The sandbox itself broke; says nothing about the command."""


@dataclass(frozen=True)
class Limits:
    """What one command may use; `disk_bytes` and `entries` are over everything it can write to."""

    memory_bytes: int = 1 << 30  # private memory of each process
    processes: int = 128
    file_bytes: int = 64 << 20  # the largest single file
    open_files: int = 256
    cpu_seconds: int | None = None  # of each process; the wall clock is limited by the time-out anyway
    disk_bytes: int = 1 << 30
    entries: int = 200_000


@dataclass(frozen=True)
class Mount:
    """A host folder or file that the command may read; `inside` is where it would like to find it."""

    host: Path
    inside: str


@dataclass(frozen=True)
class Command:
    """One program to run. Use `Sandbox.place` for paths in `argv` and `env`: not every tier can move folders.

    The workspace belongs to the sandbox while the command runs: when we are root it is handed to another user and
    back, so it must not share hard links with anything else. Without `home` and `tmp` each command gets fresh ones.
    """

    argv: tuple[str, ...]
    workspace: Path
    writable: bool = True
    mounts: tuple[Mount, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    timeout_seconds: float = 30.0
    output_bytes: int = 1_000_000  # kept of stdout and of stderr; more is read and dropped, then ends the command
    merge_output: bool = True  # stderr goes into stdout, in order of arrival
    limits: Limits = Limits()
    network: bool = False  # only for programs the operator trusts
    home: Path | None = None
    tmp: Path | None = None

    def __post_init__(self) -> None:
        longest = max((len(part.encode("utf-8", "surrogateescape")) for part in self.argv), default=0)
        if not self.argv or longest > MAX_ARGUMENT_BYTES:
            raise BadInput(f"a command needs 1 to {MAX_ARGUMENT_BYTES} bytes per argument, this one has {longest}")
        if any("\0" in part for part in (*self.argv, *self.env, *self.env.values())):
            raise BadInput("a command's arguments and environment must not contain NUL")


@dataclass(frozen=True)
class Finished:
    """How a command ended; `exit_code` is None when we ended it, and `stopped_by` says why."""

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    seconds: float
    truncated: bool = False
    stopped_by: str | None = None  # "timeout", "output", "disk"

    @property
    def timed_out(self) -> bool:
        """Whether its time ran out."""
        return self.stopped_by == "timeout"

    @property
    def output(self) -> bytes:
        """Everything it wrote."""
        return self.stdout + self.stderr


class Sandbox(Protocol):
    """A way to run commands; may be called from many threads at once and after fork."""

    @property
    def tier(self) -> str:
        """bwrap, landlock or none."""

    def place(self, host: Path, inside: str) -> str:
        """Where a command sees a host path that it would like to see at `inside`."""

    def run(self, command: Command) -> Finished:
        """Run it to its end; afterwards none of its processes is left. Raises SandboxFailed."""


def bash(script: str) -> tuple[str, ...]:
    """The argv that runs a bash script."""
    return ("/bin/bash", "-c", script)
