"""Removing folders that were made to resist: thousands of levels deep, closed, with strange names."""

import os
import stat
from collections.abc import Iterator
from itertools import count
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def remove_tree(root: Path) -> None:
    """Remove a folder and all below it; nothing happens if it is not there. Links are removed, never followed.

    Folders inside folders are moved up to the top before their parent is removed, so depth costs nothing: neither
    recursion, nor open files, nor path length.
    """
    try:
        found = root.lstat()
    except FileNotFoundError:
        return
    if not stat.S_ISDIR(found.st_mode):
        root.unlink()
        return
    root.chmod(0o700)
    top = os.open(root, _FOLDER)
    try:
        _empty(top)
    finally:
        os.close(top)
    root.rmdir()


def _empty(top: int) -> None:
    numbers = count()
    waiting = list(_folders_left(top))
    while waiting:
        name = waiting.pop()
        folder = os.open(name, _FOLDER, dir_fd=top)
        try:
            for inner in _folders_left(folder):
                outer = _free_name(top, numbers)
                os.rename(inner, outer, src_dir_fd=folder, dst_dir_fd=top)
                waiting.append(outer)
        finally:
            os.close(folder)
        os.rmdir(name, dir_fd=top)


def _folders_left(folder: int) -> Iterator[str]:
    """Remove everything but folders; open those, so that they can be moved and read, and name them."""
    with os.scandir(folder) as entries:
        listed = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_folder in listed:
        if is_folder:
            os.chmod(name, 0o700, dir_fd=folder)
            yield name
        else:
            os.unlink(name, dir_fd=folder)


def _free_name(top: int, numbers: Iterator[int]) -> str:
    for number in numbers:
        name = f".removing-{number}"
        try:
            os.stat(name, dir_fd=top, follow_symlinks=False)
        except FileNotFoundError:
            return name
    raise AssertionError("numbers do not end")
