"""Starting a command through the launcher: what the tiers `landlock` and `none` share."""

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

from service.sandbox.capture import Watched, watch
from service.sandbox.folders import Folders
from service.sandbox.port import Command, Finished
from service.sandbox.rlimits import limits_of
from service.sandbox.starting import PATH, STATUS, files_in_memory, started
from service.sandbox.usage import DiskWatch

_LAUNCHER = str(Path(__file__).with_name("launcher.py"))


@dataclass(frozen=True)
class Confinement:
    """What the launcher does to a command beyond limits: the fields of its spec."""

    uid: int | None = None
    landlock: dict[str, object] | None = None
    seccomp: str | None = None


def run_launched(command: Command, folders: Folders, confinement: Confinement) -> Finished:
    """Run a command in its real folders."""
    spec = json.dumps(_spec(command, folders, confinement)).encode()
    leash_in, leash_out = os.pipe()
    try:
        with files_in_memory([spec]) as (spec_file,):
            argv = [sys.executable, "-I", "-S", _LAUNCHER, str(spec_file), STATUS, str(leash_in)]
            with started(argv, command, uid=None, pass_fds=[spec_file, leash_in], stop=_stop) as watched:
                return watch(watched, command, DiskWatch(folders.written_by(command), command.limits))
    finally:
        os.close(leash_in)
        os.close(leash_out)


def _stop(watched: Watched) -> None:
    watched.process.terminate()


def _spec(command: Command, folders: Folders, confinement: Confinement) -> dict[str, object]:
    fixed = {"PATH": PATH, "HOME": str(folders.home), "TMPDIR": str(folders.tmp), "LANG": "C.UTF-8", "USER": "user"}
    return {
        "argv": list(command.argv),
        "env": {**fixed, **command.env},
        "cwd": str(folders.workspace),
        "uid": confinement.uid,
        "limits": dict(limits_of(command)),
        "landlock": confinement.landlock,
        "seccomp": confinement.seccomp,
    }
