"""Unpacking archives from strangers: only regular files and folders come out, only inside, and only so many.

The format is told by the first bytes, not the name: zip (also `.skill`) or gzipped tar. Names are checked by `names`,
tar is read by `tarstream`; the standard library never extracts anything here.
"""

import os
import struct
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from service.sandbox.archive import BadArchive, Member, UnpackCaps
from service.sandbox.names import NameCheck
from service.sandbox.removal import remove_tree
from service.sandbox.tarstream import tar_members
from service.sandbox.zipstream import zip_members

_CHUNK = 65_536
# What the standard library raises when it reads nonsense.
_DAMAGE = (EOFError, OSError, RuntimeError, ValueError, struct.error, zipfile.BadZipFile, zlib.error)


@dataclass(frozen=True)
class Unpacked:
    """What came out; `root` is the one folder that holds everything, or the destination itself."""

    root: Path
    files: int
    total_bytes: int


def unpack(archive: Path, destination: Path, caps: UnpackCaps = UnpackCaps()) -> Unpacked:
    """Unpack into a folder that does not exist yet; raises BadArchive, and then nothing is left of it."""
    try:
        file = archive.open("rb")
    except OSError as error:
        raise BadArchive(f"archive {archive.name} cannot be read: {error.strerror}") from error
    with file:
        destination.mkdir(mode=0o755)
        try:
            return _unpack(file, destination, caps)
        except _DAMAGE as error:
            remove_tree(destination)
            raise BadArchive(f"archive {archive.name} is damaged: {str(error) or 'it ends too early'}") from error
        except BaseException:
            remove_tree(destination)
            raise


def _unpack(file: BinaryIO, destination: Path, caps: UnpackCaps) -> Unpacked:
    size = os.fstat(file.fileno()).st_size
    if size > caps.archive_bytes:
        raise BadArchive(f"the archive has {size} bytes, more than {caps.archive_bytes}")
    names = NameCheck(caps)
    files = total = 0
    for member in _members(file, size, caps):
        path = destination / names.accept(member.name, member.is_folder)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o755)
        if member.is_folder:
            path.mkdir(exist_ok=True, mode=0o755)
            continue
        files += 1
        total += _write(path, member, min(caps.file_bytes, caps.total_bytes - total))
    return Unpacked(_only_folder(destination), files, total)


def _members(file: BinaryIO, size: int, caps: UnpackCaps) -> Iterator[Member]:
    start = file.read(4)
    file.seek(0)
    if start.startswith(b"\x1f\x8b"):
        return tar_members(file, size, caps)
    if start in (b"PK\x03\x04", b"PK\x05\x06"):
        return zip_members(file, size, caps)
    raise BadArchive("the file is neither a zip (.zip, .skill) nor a gzipped tar (.tar.gz) archive")


def _write(path: Path, member: Member, cap: int) -> int:
    """Write one new file, counting what really comes; its size as claimed is not believed."""
    written = 0
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(number, "wb") as file:
        while chunk := member.content.read(_CHUNK):
            written += len(chunk)
            if written > cap:
                raise BadArchive(f"{member.name} makes the archive larger than allowed ({cap} bytes were left)")
            file.write(chunk)
        os.fchmod(number, 0o755 if member.is_runnable else 0o644)
    return written


def _only_folder(destination: Path) -> Path:
    found = [entry for entry in destination.iterdir() if entry.name != "__MACOSX"]
    return found[0] if len(found) == 1 and found[0].is_dir() else destination
