"""How much a running command has written: no limit of the kernel covers many files together."""

import os
import time
from collections.abc import Iterable
from pathlib import Path

from service.sandbox.port import Limits

_LOOK_EVERY_SECONDS = 0.5
_UNREADABLE_FOLDERS = 16  # so many closed folders may hide what is in them


class DiskWatch:
    """Looks at the folders of one command about twice a second; looking stays below a tenth of the time."""

    def __init__(self, folders: Iterable[Path], limits: Limits) -> None:
        self._folders = tuple(folders)
        self._limits = limits
        self._next_look = time.monotonic() + _LOOK_EVERY_SECONDS

    def is_over(self) -> bool:
        """Whether more was written than allowed; False when it is too early to look again."""
        started = time.monotonic()
        if started < self._next_look:
            return False
        over = exceeds(self._folders, self._limits)
        took = time.monotonic() - started
        self._next_look = started + took + max(_LOOK_EVERY_SECONDS, 10 * took)
        return over


def exceeds(folders: Iterable[Path], limits: Limits) -> bool:
    """Whether the folders hold more bytes or entries than allowed, or hide what they hold."""
    entries = size = unreadable = 0
    waiting = [str(folder) for folder in folders]
    while waiting:
        try:
            count, total, inner = _look(waiting.pop())
        except FileNotFoundError:
            continue  # it is being worked in
        except OSError:  # closed, or deeper than a path can say
            unreadable += 1
            count, total, inner = 0, 0, []
        entries, size = entries + count, size + total
        waiting += inner
        if entries > limits.entries or size > limits.disk_bytes or unreadable > _UNREADABLE_FOLDERS:
            return True
    return False


def _look(folder: str) -> tuple[int, int, list[str]]:
    """Entries, bytes on disk and folders of one folder."""
    count = total = 0
    inner = []
    with os.scandir(folder) as entries:
        for entry in entries:
            count += 1
            if entry.is_dir(follow_symlinks=False):
                inner.append(entry.path)
            else:
                total += _bytes_of(entry)
    return count, total, inner


def _bytes_of(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_blocks * 512
    except FileNotFoundError:
        return 0
