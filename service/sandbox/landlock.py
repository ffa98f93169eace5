"""The tier `landlock`: for Linux without bubblewrap, by name only.

A command may read the system and its own folders and write its own, has no network and no other processes to reach.
It still sees that other paths and processes exist, and its files lie where they really are.
"""

import ctypes
import os
import platform
from pathlib import Path

from service.errors import Unavailable
from service.sandbox import seccomp
from service.sandbox.folders import Folders, lent_folders
from service.sandbox.launched import Confinement, run_launched
from service.sandbox.port import Command, Finished, SandboxFailed
from service.sandbox.slots import UID_BASE, needs_switch, user_of_a_command

_CREATE_RULESET, _ASK_VERSION = 444, 1
_ABI_TRUNCATE, _ABI_SIGNALS = 3, 6
_READ = (
    *("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"),
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime"),
    *("/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/passwd", "/etc/group", "/etc/nsswitch.conf", "/etc/hosts"),
)
_DEVICES = tuple(f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom"))


class Landlock:
    """Runs commands under Landlock, the system call filter and limits. Opened by `open_sandbox`, which probes it."""

    tier = "landlock"

    def __init__(self, work: Path | None = None, uid_base: int = UID_BASE) -> None:
        self._work = work
        self._uid_base = uid_base
        self._abi = require_landlock()

    def place(self, host: Path, inside: str) -> str:  # noqa: ARG002  nothing can be moved
        return str(host.resolve())

    def run(self, command: Command) -> Finished:
        with user_of_a_command(self._uid_base) as uid:
            try:
                with lent_folders(command, uid, self._work) as folders:
                    return run_launched(command, folders, self._confinement(command, folders, uid))
            except OSError as error:
                raise SandboxFailed(f"the sandbox cannot use {error.filename}: {error.strerror}") from error

    def _confinement(self, command: Command, folders: Folders, uid: int | None) -> Confinement:
        own = [str(folder) for folder in folders.written_by(command)]
        read = [*_READ, str(folders.workspace), *(str(mount.host.resolve()) for mount in command.mounts)]
        families = seccomp.FAMILIES_NET if command.network else seccomp.FAMILIES_LOCAL
        return Confinement(
            uid=uid,
            landlock={
                "abi": self._abi,
                "network": command.network,
                "read": [*read, *(["/etc/resolv.conf"] if command.network else [])],
                "write": [*own],
                "devices": [*_DEVICES],
            },
            seccomp=seccomp.build_filter(families).hex(),
        )


def landlock_abi() -> int:
    """The kernel's version of Landlock; 0 if it has none."""
    if platform.system() != "Linux":
        return 0
    found = int(ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, _ASK_VERSION))
    return max(0, found)


def require_landlock() -> int:
    """The kernel's version of Landlock if it is enough here; raises Unavailable with the reason."""
    if not seccomp.is_supported():
        raise Unavailable(f"the sandbox's system call filter is for Linux on x86_64, this is {platform.machine()}")
    needed = _ABI_TRUNCATE if needs_switch() else _ABI_SIGNALS
    if (found := landlock_abi()) < needed:
        who = (
            "as root" if os.geteuid() == 0 else "as a user who is not root, whose other processes must be out of reach"
        )
        raise Unavailable(f"landlock version {needed} is needed {who}, this kernel has {found}; use bubblewrap")
    return found
