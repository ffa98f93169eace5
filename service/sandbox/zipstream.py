"""Reading a zip archive: its table of contents is checked as a whole before anything is unpacked."""

import stat
import struct
import zipfile
from collections.abc import Iterator
from typing import BinaryIO

from service.sandbox.archive import BadArchive, Member, UnpackCaps

_LOCAL_HEADER = 30
_END = b"PK\x05\x06"
_END_SIZE = 22
_MAX_COMMENT = 65_535
_TABLE_BYTES_PER_ENTRY = 1_100
_ENCRYPTED = 0x1 | 0x40 | 0x2000
_UTF8 = 0x800


def zip_members(file: BinaryIO, size: int, caps: UnpackCaps) -> Iterator[Member]:
    """Every file and folder in order; read the content of one before asking for the next."""
    _check_table(file, size, caps)
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        if len(entries) > caps.entries:
            raise BadArchive(f"the archive has more than {caps.entries} files and folders")
        for entry in entries:
            _check(entry)
        if sum(entry.file_size for entry in entries) > caps.unpacked_bytes(size):
            raise BadArchive("the archive unpacks to far more than its size or than is allowed")
        _check_apart(file, entries)
        for entry in entries:
            yield from _member(archive, entry)


def _member(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Iterator[Member]:
    name = _name(entry)
    mode = entry.external_attr >> 16
    is_folder = name.endswith("/") or stat.S_ISDIR(mode)
    with archive.open(entry) as content:
        yield Member(name, is_folder, bool(mode & 0o100), content)


def _check_table(file: BinaryIO, size: int, caps: UnpackCaps) -> None:
    """The library reads the whole table of contents at once, so its size is looked at first."""
    file.seek(max(0, size - _END_SIZE - _MAX_COMMENT))
    tail = file.read()
    file.seek(0)
    place = tail.rfind(_END)
    if place < 0 or len(tail) - place < _END_SIZE:
        raise BadArchive("the archive is damaged: it has no table of contents")
    disk, start_disk, _, count, table_size, _ = struct.unpack("<4H2I", tail[place + 4 : place + 20])
    if disk or start_disk or count == 0xFFFF or table_size == 0xFFFFFFFF:
        raise BadArchive("the archive is split or in the large format, which is not unpacked")
    if count > caps.entries or table_size > caps.entries * _TABLE_BYTES_PER_ENTRY:
        raise BadArchive(f"the archive has more than {caps.entries} files and folders")


def _check(entry: zipfile.ZipInfo) -> None:
    name = entry.orig_filename
    if entry.flag_bits & _ENCRYPTED:
        raise BadArchive(f"{name!r} is encrypted")
    if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BadArchive(f"{name!r} is packed with method {entry.compress_type}; only deflate is unpacked")
    if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise BadArchive(f"{name!r} is a link, a device or something else that is no file")


def _check_apart(file: BinaryIO, entries: list[zipfile.ZipInfo]) -> None:
    """Members that share their bytes are how a small archive becomes endless."""
    end = 0
    for entry in sorted(entries, key=lambda entry: entry.header_offset):
        if entry.header_offset < end:
            raise BadArchive(f"{entry.orig_filename!r} overlaps another file of the archive")
        file.seek(entry.header_offset)
        header = file.read(_LOCAL_HEADER)
        if len(header) < _LOCAL_HEADER:
            raise BadArchive("the archive ends in the middle of a file")
        name_length, extra_length = struct.unpack("<2H", header[26:30])
        end = entry.header_offset + _LOCAL_HEADER + name_length + extra_length + entry.compress_size


def _name(entry: zipfile.ZipInfo) -> str:
    """The name as written; some programs write UTF-8 without saying so."""
    if entry.flag_bits & _UTF8:
        return entry.orig_filename
    try:
        return entry.orig_filename.encode("cp437").decode("utf-8")
    except UnicodeError as error:
        raise BadArchive(f"the archive has a name that is not UTF-8: {entry.orig_filename[:40]!r}") from error
