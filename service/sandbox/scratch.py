"""Folders that live as long as one piece of work and that a sandboxed command can reach."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from service.sandbox.ownership import require_reachable
from service.sandbox.removal import remove_tree
from service.sandbox.slots import UID_BASE, needs_switch


@contextmanager
def scratch(parent: Path | None = None) -> Iterator[Path]:
    """A new folder in `parent` (default: the system's temporary folder), gone afterwards whatever was put into it.

    As root others may pass through it but not list it, because a command's user must get to the folders inside;
    make those with mode 0o700. Raises SandboxFailed where the parent is closed to others.
    """
    folder = Path(tempfile.mkdtemp(prefix="assay-", dir=parent)).resolve()
    try:
        if needs_switch():
            require_reachable(folder, UID_BASE)
            folder.chmod(0o711)
        yield folder
    finally:
        remove_tree(folder)
