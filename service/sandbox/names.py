"""Which names of an archive may become files, on any system and only once."""

import unicodedata

from service.sandbox.archive import BadArchive, UnpackCaps

_RESERVED = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{number}" for port in ("com", "lpt") for number in range(10))]
)


class NameCheck:
    """Looks at the names of one archive, one after the other."""

    def __init__(self, caps: UnpackCaps) -> None:
        self._caps = caps
        self._seen: dict[str, bool] = {}  # folded path -> whether it is a folder
        self._spelling: dict[str, str] = {}  # folded path -> as first written
        self._entries = 0

    def accept(self, name: str, is_folder: bool) -> str:
        """The relative path to write to; raises BadArchive for names that leave, hide, clash or never end."""
        self._entries += 1
        if self._entries > self._caps.entries:
            raise BadArchive(f"the archive has more than {self._caps.entries} files and folders")
        parts = self._parts(name)
        for depth in range(1, len(parts)):
            self._claim("/".join(parts[:depth]), True)
        path = "/".join(parts)
        if path:
            self._claim(path, is_folder)
        elif not is_folder:
            raise BadArchive("a file of the archive has no name")
        return path

    def _parts(self, name: str) -> list[str]:
        if len(name.encode("utf-8", "surrogateescape")) > self._caps.path_bytes:
            raise BadArchive(f"name {name[:40]!r}… is longer than {self._caps.path_bytes} bytes")
        if name.startswith("/") or "\\" in name or not name.isprintable():
            raise BadArchive(f"name {name!r} is absolute or has a character that no name may have")
        parts = [part for part in name.split("/") if part not in ("", ".")]
        if len(parts) > self._caps.depth:
            raise BadArchive(f"name {name!r} is deeper than {self._caps.depth} folders")
        for part in parts:
            self._check(part, name)
        return parts

    def _check(self, part: str, name: str) -> None:
        if part == ".." or ":" in part:
            raise BadArchive(f"name {name!r} leads out of the archive")
        if len(part.encode()) > self._caps.name_bytes:
            raise BadArchive(f"name {name[:40]!r}… has a part longer than {self._caps.name_bytes} bytes")
        if part.endswith((" ", ".")) or part.partition(".")[0].casefold().strip() in _RESERVED:
            raise BadArchive(f"name {name!r} cannot exist on every system")

    def _claim(self, path: str, is_folder: bool) -> None:
        """Take a path; the same one again is fine for a folder in the same spelling only."""
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
        if folded not in self._seen:
            self._seen[folded] = is_folder
            self._spelling[folded] = path
        elif not (is_folder and self._seen[folded] and self._spelling[folded] == path):
            raise BadArchive(f"{path!r} is in the archive twice, or differs from another name in case only")
