"""The tier `bwrap`: every command in fresh namespaces of its own, so nothing of it survives."""

import contextlib
import ctypes
import functools
import os
import platform
import shutil
import signal
import time
from pathlib import Path

from service.errors import Unavailable
from service.sandbox import seccomp
from service.sandbox.capture import Watched, watch
from service.sandbox.folders import Folders, lent_folders
from service.sandbox.port import Command, Finished, SandboxFailed
from service.sandbox.profile import ETC, profile
from service.sandbox.rlimits import limits_of
from service.sandbox.slots import UID_BASE, user_of_a_command
from service.sandbox.starting import STATUS, files_in_memory, started
from service.sandbox.usage import DiskWatch

_PR_SET_CHILD_SUBREAPER = 36
_REAP_SECONDS = 10.0


class Bubblewrap:
    """Runs commands under bubblewrap. Opened by `open_sandbox`, which probes it."""

    tier = "bwrap"

    def __init__(self, work: Path | None = None, uid_base: int = UID_BASE) -> None:
        self._work = work
        self._uid_base = uid_base
        self._program = find_bubblewrap()

    def place(self, host: Path, inside: str) -> str:  # noqa: ARG002  the tier with mounts keeps the wish
        return inside

    def run(self, command: Command) -> Finished:
        with user_of_a_command(self._uid_base) as uid:
            try:
                with lent_folders(command, uid, self._work) as folders:
                    return self._run(command, folders, uid)
            except OSError as error:
                raise SandboxFailed(f"the sandbox cannot use {error.filename}: {error.strerror}") from error

    def _run(self, command: Command, folders: Folders, uid: int | None) -> Finished:
        become_subreaper()
        contents = [_filter(), *ETC.values()]
        with files_in_memory(contents) as numbers:
            arguments = profile(command, folders, numbers[0], dict(zip(ETC, numbers[1:], strict=True)))
            # In a file, so that the command does not find the host's paths in /proc/1/cmdline.
            text = b"".join(os.fsencode(part) + b"\0" for part in arguments)
            with files_in_memory([text]) as (list_of_arguments,):
                argv = [self._program, "--json-status-fd", STATUS, "--args", str(list_of_arguments), "--"]
                with started(
                    [*argv, *limited(command)], command, uid=uid, pass_fds=[*numbers, list_of_arguments], stop=_stop
                ) as watched:
                    try:
                        return watch(watched, command, DiskWatch(folders.written_by(command), command.limits))
                    finally:
                        _reap(watched)


def find_bubblewrap() -> str:
    """The program's path; raises Unavailable with the remedy."""
    if platform.system() != "Linux":
        raise Unavailable("the sandbox bwrap needs Linux")
    if not seccomp.is_supported():
        raise Unavailable(f"the sandbox's system call filter is written for x86_64 only, this is {platform.machine()}")
    program = shutil.which("bwrap", path="/usr/local/bin:/usr/bin:/bin") or shutil.which("bwrap")
    if program is None:
        raise Unavailable("bubblewrap is not installed; install the package bubblewrap")
    return program


def limited(command: Command) -> list[str]:
    """The command behind prlimit, which runs inside: there the number of processes counts this sandbox alone."""
    options = [f"--{name}={value}:{value}" for name, value in limits_of(command).items()]
    return ["/usr/bin/prlimit", *options, "--", *command.argv]


def become_subreaper() -> None:
    """Orphans of our children come to us, not to init; per process, so it is asked again after every fork.

    bubblewrap leaves its first process behind. Where init is slow to reap, or is this worker, such zombies pile up.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@functools.cache
def _filter() -> bytes:
    return seccomp.build_filter(seccomp.FAMILIES_NET)


def _stop(watched: Watched) -> None:
    """Kill the first process of the namespace: the kernel kills all others."""
    first = watched.said("child-pid")
    with contextlib.suppress(ProcessLookupError):
        if first is None:
            watched.process.kill()
        else:
            os.kill(first, signal.SIGKILL)


def _reap(watched: Watched) -> None:
    """Wait until the namespace is gone, and take its first process off the process table."""
    if watched.process.poll() is None:
        _stop(watched)
        watched.process.wait(timeout=_REAP_SECONDS)
    first = watched.said("child-pid")
    pause = 0.0002
    deadline = time.monotonic() + _REAP_SECONDS
    while first is not None and time.monotonic() < deadline:
        try:
            if os.waitpid(first, os.WNOHANG) != (0, 0):
                return
        except ChildProcessError:
            return  # bubblewrap or init was faster
        time.sleep(pause)
        pause = min(0.05, pause * 2)
