"""Handing folders to the user of a command and back, and whether that user can get there at all."""

import os
import stat
from pathlib import Path

from service.sandbox.port import SandboxFailed

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def hand_over(root: Path, uid: int) -> None:
    """Give a folder and everything in it to a user (and the group of that number); links are given, not followed."""
    _visit(root, uid)


def take_back(root: Path) -> None:
    """Make a folder and everything in it ours again and readable, whatever its modes were set to."""
    _visit(root, os.geteuid() if os.geteuid() == 0 else None)


def require_reachable(path: Path, uid: int) -> None:
    """Refuse a path that another user cannot reach because of a folder above it."""
    for folder in path.resolve().parents:
        if not _may_pass(folder.stat(), uid):
            raise SandboxFailed(
                f"sandbox user {uid} cannot reach {path}: {folder} is closed to others; "
                f"work in a folder that others may pass through (chmod o+x {folder}) or run as a user other than root"
            )


def _may_pass(found: os.stat_result, uid: int) -> bool:
    return bool(found.st_mode & (0o100 if found.st_uid == uid else 0o001))


def _visit(root: Path, uid: int | None) -> None:
    """Walk down with one open folder at a time, so that no depth is too deep; nothing else runs in there now."""
    _own(str(root), root.lstat(), uid, None)
    here = os.open(root, _FOLDER)
    try:
        waiting = [_own_entries(here, uid)]
        while waiting:
            if waiting[-1]:
                here = _move(here, waiting[-1].pop())
                waiting.append(_own_entries(here, uid))
            else:
                waiting.pop()
                here = _move(here, "..") if waiting else here
    finally:
        os.close(here)


def _move(here: int, name: str) -> int:
    there = os.open(name, _FOLDER, dir_fd=here)
    os.close(here)
    return there


def _own_entries(folder: int, uid: int | None) -> list[str]:
    """Own what is in an open folder; the names of the folders in it."""
    folders = []
    with os.scandir(folder) as entries:
        for entry in entries:
            found = entry.stat(follow_symlinks=False)
            _own(entry.name, found, uid, folder)
            if stat.S_ISDIR(found.st_mode):
                folders.append(entry.name)
    return folders


def _own(name: str, found: os.stat_result, uid: int | None, folder: int | None) -> None:
    if uid is not None and (found.st_uid, found.st_gid) != (uid, uid):
        os.chown(name, uid, uid, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        return
    # Readable for us, and never setuid: on the host that would lend the owner's rights to anybody.
    mode = stat.S_IMODE(found.st_mode) & 0o777 | (0o700 if stat.S_ISDIR(found.st_mode) else 0o400)
    if mode != stat.S_IMODE(found.st_mode):
        os.chmod(name, mode, dir_fd=folder)
