"""Files of a folder somebody gave us: read only what is really inside it, and only up to a size."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from service.errors import BadInput

MOST_JSON_BYTES = 10 * 2**20


class Folder:
    """A folder that is read and never left, whatever its links say."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise BadInput(f"{root} is not a folder")
        self.root = root.resolve()
        self._known = (self.root, True)

    def holds(self, path: Path) -> bool:
        """Whether this is a file inside, after following links."""
        try:
            mode = os.lstat(path).st_mode
        except (OSError, ValueError):
            return False
        if stat.S_ISLNK(mode):
            return path.is_file() and path.resolve().is_relative_to(self.root)
        return stat.S_ISREG(mode) and self._is_inside(path.parent)

    def _is_inside(self, parent: Path) -> bool:
        """Whether a folder is inside; the last answer is kept, because files are asked for folder by folder."""
        if self._known[0] != parent:
            self._known = (parent, parent.resolve().is_relative_to(self.root))
        return self._known[1]

    def bytes_of(self, path: Path, most: int = MOST_JSON_BYTES) -> bytes | None:
        """A file's content; None when it is not there or outside. Raises BadInput when it is larger than `most`."""
        if not self.holds(path):
            return None
        with path.open("rb") as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise BadInput(f"{path.name} is larger than {most // 2**20} MiB")
        return data

    def first(self, *candidates: Path) -> Path | None:
        """The first of these files that is there."""
        return next((path for path in candidates if self.holds(path)), None)

    def subfolders(self, path: Path) -> list[Path]:
        """Visible folders in here, links to elsewhere left out, in the order people count."""
        found = [
            child
            for child in path.iterdir()
            if not child.name.startswith((".", "__")) and child.is_dir() and child.resolve().is_relative_to(self.root)
        ]
        return sorted(found, key=lambda child: counted(child.name))

    def files_below(self, path: Path) -> Iterator[Path]:
        """All files below, sorted, links to elsewhere left out."""
        if path.is_dir():
            yield from sorted(child for child in path.rglob("*") if self.holds(child))


def counted(name: str) -> tuple[tuple[int, int, str], ...]:
    """A sort key in which eval-2 comes before eval-10."""
    parts: list[tuple[int, int, str]] = []
    text = ""
    for letter in name.lower() + "\0":
        if parts and not text and letter.isdecimal() and parts[-1][0] == 0:
            parts[-1] = (0, parts[-1][1] * 10 + int(letter), "")
        elif letter.isdecimal():
            parts += [(1, 0, text)] if text else []
            parts.append((0, int(letter), ""))
            text = ""
        else:
            text += letter
    return (*parts, (1, 0, text))
