"""The words of unpacking: what is allowed, what an archive holds, and why it is refused."""

from dataclasses import dataclass
from typing import Protocol

from service.errors import BadInput


class BadArchive(BadInput):
    """An archive that we do not unpack; the message says which part of it and why."""


class Content(Protocol):
    """The bytes of one member, to be read once and in order."""

    def read(self, size: int, /) -> bytes:
        """At most so many bytes; none at the end."""


@dataclass(frozen=True)
class UnpackCaps:
    """How much an archive may be and become."""

    archive_bytes: int = 20_000_000
    total_bytes: int = 100_000_000
    file_bytes: int = 25_000_000
    entries: int = 2_000
    ratio: int = 200  # unpacked to packed, over the whole archive
    depth: int = 32
    name_bytes: int = 255  # of one segment
    path_bytes: int = 1_000

    def unpacked_bytes(self, packed: int) -> int:
        """What so many packed bytes may become; small archives may compress well."""
        return min(self.total_bytes + 1_000_000, max(1_000_000, packed * self.ratio))


@dataclass(frozen=True)
class Member:
    """One file or folder of an archive; the name as it stands there."""

    name: str
    is_folder: bool
    is_runnable: bool
    content: Content
