"""Who a command is on this machine: a user of its own while we are root, ourselves otherwise.

As root, bubblewrap's own --uid is cosmetic: behind it stands user 0, which may write core_pattern and plant setuid-root
files. So every command gets the next free user id, guarded by a lock that all our processes on this machine share.
"""

import fcntl
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.sandbox.port import SandboxFailed

UID_BASE = 200_000
SLOTS = 1_000


def needs_switch() -> bool:
    """Whether commands must run as somebody else."""
    return os.geteuid() == 0


@contextmanager
def user_of_a_command(base: int = UID_BASE, slots: int = SLOTS) -> Iterator[int | None]:
    """The user id for one command, nobody else's until the end; None: we are not root and stay who we are."""
    if not needs_switch():
        yield None
        return
    lock, uid = _take(_folder(base), base, slots)
    try:
        yield uid
    finally:
        # Unlocked by hand: a process forked meanwhile holds the same lock by inheritance.
        fcntl.flock(lock, fcntl.LOCK_UN)
        os.close(lock)


def _take(folder: Path, base: int, slots: int) -> tuple[int, int]:
    for slot in range(slots):
        lock = os.open(folder / str(slot), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
        else:
            return lock, base + slot
    raise SandboxFailed(f"all {slots} sandbox users from {base} on are busy; try again later")


def _folder(base: int) -> Path:
    """The folder of the locks; it must be root's own, or any user could hold our slots."""
    # One place per machine, whatever TMPDIR says: two workers with different locks would share users.
    parent = Path("/run") if os.access("/run", os.W_OK) else Path(tempfile.gettempdir())
    folder = parent / f"assay-slots-{base}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != 0 or found.st_mode & 0o022:
        raise SandboxFailed(f"{folder} is not a folder that only root may write to; remove it")
    return folder
