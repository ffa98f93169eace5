"""Reading a gzipped tar archive from front to back, block by block.

Written by hand because the standard library's reader believes what it reads: headers of any length, sizes below zero,
links that lead outside. Here a header is 512 bytes, and what may precede it is small.
"""

import gzip
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from service.sandbox.archive import BadArchive, Member, UnpackCaps

_BLOCK = 512
_MAX_EXTENSION = 65_536  # a long name, or a set of attributes
_FILE, _FOLDER = ("0", "\0", "7"), "5"
_ATTRIBUTES, _GLOBAL_ATTRIBUTES, _LONG_NAME = "x", "g", "L"


class _Counted:
    """The unpacked stream; refuses to become larger than the caps allow."""

    def __init__(self, file: BinaryIO, allowed: int) -> None:
        self._unzipped = gzip.GzipFile(fileobj=file, mode="rb")
        self._left = allowed

    def read(self, size: int) -> bytes:
        """Exactly so many bytes, or none at the very end."""
        self._left -= size
        if self._left < 0:
            raise BadArchive("the archive unpacks to far more than its size or than is allowed")
        try:
            content = self._unzipped.read(size)
        except (zlib.error, EOFError) as error:
            raise BadArchive(f"the archive is damaged: {error}") from error
        if content and len(content) < size:
            raise BadArchive("the archive ends in the middle of a file")
        return content


class _Part:
    """The content of one member inside the stream."""

    def __init__(self, stream: _Counted, size: int) -> None:
        self._stream = stream
        self._left = size
        self._padding = -size % _BLOCK

    def read(self, size: int, /) -> bytes:
        size = min(size, self._left)
        self._left -= size
        content = self._stream.read(size) if size else b""
        if size and not content:
            raise BadArchive("the archive ends in the middle of a file")
        if self._left == 0 and self._padding:
            self._stream.read(self._padding)
            self._padding = 0
        return content

    def finish(self) -> None:
        """Skip what nobody read."""
        while self._left or self._padding:
            self.read(1 << 16)


def tar_members(file: BinaryIO, size: int, caps: UnpackCaps) -> Iterator[Member]:
    """Every file and folder in order; read the content of one before asking for the next."""
    stream = _Counted(file, caps.unpacked_bytes(size))
    extended: dict[str, str] = {}
    while (header := stream.read(_BLOCK)) and header != bytes(_BLOCK):
        _check_sum(header)
        kind = chr(header[156])
        part = _Part(stream, _size(header, extended))
        if kind in (_ATTRIBUTES, _GLOBAL_ATTRIBUTES, _LONG_NAME):
            content = _extension(part, header)
            if kind == _LONG_NAME:
                extended["path"] = _text(content.rstrip(b"\0"))
            elif kind == _ATTRIBUTES:
                extended |= _attributes(content)
        else:
            yield _member(kind, header, extended, part)
            extended = {}
        part.finish()


def _member(kind: str, header: bytes, extended: dict[str, str], part: _Part) -> Member:
    name = extended.get("path") or _name(header)
    is_folder = kind == _FOLDER or (kind in _FILE and name.endswith("/"))
    if kind not in _FILE and not is_folder:
        raise BadArchive(f"{name!r} is a link, a device or something else that is no file")
    return Member(name, is_folder, bool(_number(header[100:108], "mode") & 0o100), part)


def _name(header: bytes) -> str:
    name, prefix = _text(header[:100].split(b"\0")[0]), _text(header[345:500].split(b"\0")[0])
    is_posix = header[257:263] == b"ustar\0"
    return f"{prefix}/{name}" if is_posix and prefix else name


def _size(header: bytes, extended: dict[str, str]) -> int:
    if "size" in extended and chr(header[156]) not in (_ATTRIBUTES, _GLOBAL_ATTRIBUTES, _LONG_NAME):
        return _number(extended["size"].encode(), "size", 10)
    return _number(header[124:136], "size")


def _number(field: bytes, what: str, base: int = 8) -> int:
    """A number in digits; binary ones are only for sizes that we refuse anyway, and for less than nothing."""
    digits = field.strip(b"\0 ")
    if not all(48 <= digit < 48 + base for digit in digits) or len(digits) > 20:
        raise BadArchive(f"the archive has a {what} that is not a number")
    return int(digits or b"0", base)


def _check_sum(header: bytes) -> None:
    if len(header) != _BLOCK or _number(header[148:156], "checksum") != sum(header[:148] + b" " * 8 + header[156:]):
        raise BadArchive("the archive is damaged: a header does not match its checksum")


def _extension(part: _Part, header: bytes) -> bytes:
    size = _number(header[124:136], "size")
    if size > _MAX_EXTENSION:
        raise BadArchive(f"the archive has a header of {size} bytes, more than {_MAX_EXTENSION}")
    return part.read(size)


def _attributes(content: bytes) -> dict[str, str]:
    """The attributes we follow (path, size) out of records `LENGTH KEY=VALUE newline`."""
    found = {}
    while content:
        length_text, _, _ = content.partition(b" ")
        length = _number(length_text[:20], "attribute length", 10)
        record, content = content[len(length_text) + 1 : length], content[length:]
        key, equals, value = record.partition(b"=")
        if length <= len(length_text) or not equals or not value.endswith(b"\n"):
            raise BadArchive("the archive has attributes that cannot be read")
        if key in (b"path", b"size"):
            found[key.decode()] = _text(value[:-1])
        elif key.startswith(b"GNU.sparse"):
            raise BadArchive("the archive has files with holes, which are not unpacked")
    return found


def _text(name: bytes) -> str:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadArchive(f"the archive has a name that is not UTF-8: {name[:40]!r}") from error
