"""What a command sees under bubblewrap: /usr, a few files of /etc, its own folders, and nothing else."""

import functools
from pathlib import Path

from service.sandbox.folders import Folders
from service.sandbox.port import WORKSPACE, Command
from service.sandbox.starting import PATH

USER_ID = 1000
HOME = "/home/user"

# Written by us: the real ones name this machine's users.
ETC = {
    "/etc/passwd": f"root:x:0:0::/root:/bin/false\nuser:x:{USER_ID}:{USER_ID}::{HOME}:/bin/bash\n".encode(),
    "/etc/group": f"root:x:0:\nuser:x:{USER_ID}:\n".encode(),
    "/etc/nsswitch.conf": b"passwd: files\ngroup: files\nhosts: files dns\n",
    "/etc/hosts": b"127.0.0.1 localhost\n::1 localhost\n",
}
_ETC_SHARED = ("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "localtime", "ssl/certs", "ssl/openssl.cnf")


def profile(command: Command, folders: Folders, seccomp: int, etc: dict[str, int]) -> list[str]:
    """bubblewrap's options; `seccomp` and `etc` are numbers of open files."""
    return [
        *_namespaces(command),
        *_environment(command),
        *_system(command.network),
        *[part for path, number in etc.items() for part in ("--ro-bind-data", str(number), path)],
        *["--proc", "/proc", "--dev", "/dev"],
        # Folders of this run, not tmpfs: bubblewrap cannot limit the number of files in a tmpfs.
        *["--bind", str(folders.shared_memory), "/dev/shm", "--bind", str(folders.tmp), "/tmp"],  # noqa: S108
        *["--bind", str(folders.home), HOME],
        *["--bind" if command.writable else "--ro-bind", str(folders.workspace), WORKSPACE],
        *[part for mount in command.mounts for part in ("--ro-bind", str(mount.host.resolve()), mount.inside)],
        # The root and /dev are writable tmpfs without a limit until now.
        *["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", WORKSPACE, "--seccomp", str(seccomp)],
    ]


def _namespaces(command: Command) -> list[str]:
    """No --hostname: setting it is forbidden in some containers."""
    return [
        *["--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"],
        *([] if command.network else ["--unshare-net"]),
        *["--disable-userns", "--uid", str(USER_ID), "--gid", str(USER_ID)],
        *["--die-with-parent", "--new-session", "--cap-drop", "ALL"],
    ]


def _environment(command: Command) -> list[str]:
    fixed = {"PATH": PATH, "HOME": HOME, "TMPDIR": "/tmp", "LANG": "C.UTF-8", "USER": "user"}  # noqa: S108
    variables = {**fixed, **command.env}
    return ["--clearenv", *[part for name, value in variables.items() for part in ("--setenv", name, value)]]


def _system(network: bool) -> list[str]:
    names = _ETC_SHARED + (("resolv.conf",) if network else ())
    return [*_usr(), *[part for name in names for part in ("--ro-bind-try", f"/etc/{name}", f"/etc/{name}")]]


@functools.cache
def _usr() -> tuple[str, ...]:
    """/usr, and the folders that are links into it on most systems, as they are here."""
    options = ["--ro-bind", "/usr", "/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        folder = Path("/", name)
        if folder.is_symlink():
            options += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            options += ["--ro-bind", str(folder), str(folder)]
    return tuple(options)
