"""Folders that live as long as one piece of work and that a sandboxed command can reach."""

import contextlib
import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.sandbox.ownership import require_reachable
from service.sandbox.removal import remove_tree
from service.sandbox.slots import UID_BASE, needs_switch

_PREFIX = "assay-scratch-"
_STALE_SECONDS = 300.0  # younger ones may belong to somebody who has not locked them yet


_swept_at: dict[Path, float] = {}  # parent -> when this process last looked for leftovers there


@contextmanager
def scratch(parent: Path | None = None) -> Iterator[Path]:
    """A new folder in `parent` (default: the system's temporary folder), gone afterwards whatever was put into it.

    As root others may pass through it but not list it, because a command's user must get to the folders inside;
    make those with mode 0o700. Raises SandboxFailed where the parent is closed to others.
    """
    with private_folder(parent) as folder:
        if needs_switch():
            require_reachable(folder, UID_BASE)
            folder.chmod(0o711)
        yield folder


@contextmanager
def private_folder(parent: Path | None = None) -> Iterator[Path]:
    """The same for work that no command has a part in: nobody else may enter."""
    _sweep_now_and_then(Path(parent or tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=parent)).resolve()
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)  # while we live, nobody clears it away
        yield folder
    finally:
        os.close(lock)
        remove_tree(folder)


def _sweep_now_and_then(parent: Path) -> None:
    """Whoever makes folders clears up behind those who were killed: a killed process cannot do it itself."""
    now = time.monotonic()
    if now - _swept_at.get(parent, -_STALE_SECONDS) >= _STALE_SECONDS:
        _swept_at[parent] = now
        remove_stale(parent)


def remove_stale(parent: Path | None = None, older_than_seconds: float = _STALE_SECONDS) -> int:
    """Remove what processes that were killed left in `parent`; how many folders that were."""
    removed = 0
    for folder in Path(parent or tempfile.gettempdir()).glob(_PREFIX + "*"):
        with contextlib.suppress(FileNotFoundError):  # somebody else clears up too
            found = folder.lstat()
            if found.st_uid == os.geteuid() and time.time() - found.st_mtime > older_than_seconds:
                removed += _remove_unlocked(folder)
    return removed


def _remove_unlocked(folder: Path) -> bool:
    lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remove_tree(folder)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True
