"""Reading a folder that somebody hostile may have filled: regular files only, never through a link, never without end.

Every step opens one name inside an already open folder and looks at what was opened, so nothing that is swapped
underneath can lead outside.
"""

import errno
import functools
import itertools
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from service.errors import BadInput
from service.sandbox.globs import compile_glob

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without waiting: a FIFO would block, a terminal would become ours.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_CHUNK = 1 << 20
_IS_FILE, _IS_FOLDER = "a file", "a folder"


class CannotRead(BadInput):
    """A file or folder is not one that we read; says nothing about what is in it."""


@dataclass(frozen=True)
class Caps:
    """How much a reader looks at before it refuses."""

    entries: int = 50_000
    depth: int = 64
    file_bytes: int = 10_000_000


@dataclass(frozen=True)
class Listing:
    """What is in a folder, in sorted order; paths are relative, with `/`. `skipped` maps a path to what it is."""

    files: tuple[str, ...]
    folders: tuple[str, ...]
    skipped: dict[str, str]


class Reader:
    """A folder and everything below it, seen safely; it is listed once."""

    def __init__(self, root: Path, caps: Caps = Caps()) -> None:
        self.root = root
        self.caps = caps

    @functools.cached_property
    def listing(self) -> Listing:
        """Everything there is; raises CannotRead when that is too much."""
        files: list[str] = []
        folders: list[str] = []
        skipped: dict[str, str] = {}
        for path, kind in _walk(self.root, self.caps):
            if kind == _IS_FILE:
                files.append(path)
            elif kind == _IS_FOLDER:
                folders.append(path)
            else:
                skipped[path] = kind
        return Listing(tuple(sorted(files)), tuple(sorted(folders)), skipped)

    def matching(self, pattern: str) -> list[str]:
        """The regular files that a glob names, in sorted order."""
        return list(filter(compile_glob(pattern), self.listing.files))

    def read_bytes(self, path: str) -> bytes:
        """A file's content; raises CannotRead for anything but a regular file within the cap."""
        with self._opened(path) as file:
            return _read_all(file, path, self.caps.file_bytes)

    def read_text(self, path: str) -> str:
        """A file's content as text: UTF-8 with replacements, every line end a newline."""
        text = self.read_bytes(path).decode("utf-8", "replace")
        return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text

    def copy_to(self, destination: Path) -> None:
        """Copy folders and regular files into a new folder: 0644, or 0755 where the file could be run."""
        destination.mkdir(mode=0o755)
        for folder in self.listing.folders:
            (destination / folder).mkdir(mode=0o755)
        for path in self.listing.files:
            with self._opened(path) as source:
                runnable = os.fstat(source).st_mode & 0o100
                _write_new(destination / path, _read_all(source, path, self.caps.file_bytes), bool(runnable))

    @contextmanager
    def _opened(self, path: str) -> Iterator[int]:
        """A regular file, open for reading."""
        *folders, name = _parts(path)
        try:
            folder = os.open(self.root, _FOLDER & ~os.O_NOFOLLOW)
            try:
                for part in folders:
                    inner = os.open(part, _FOLDER, dir_fd=folder)
                    os.close(folder)
                    folder = inner
                file = os.open(name, _FILE, dir_fd=folder)
            finally:
                os.close(folder)
        except OSError as error:
            raise CannotRead(f"{shown(path)} cannot be read: {_reason(error)}") from error
        try:
            if not stat.S_ISREG(mode := os.fstat(file).st_mode):
                raise CannotRead(f"{shown(path)} is {_kind(mode)}, not a regular file")
            yield file
        finally:
            os.close(file)


def shown(path: str) -> str:
    """A path that can be printed and stored whatever bytes are in it."""
    text = os.fsencode(path).decode("utf-8", "backslashreplace")
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def _walk(root: Path, caps: Caps) -> Iterator[tuple[str, str]]:
    """Every entry below root with its kind; only one chain of folders is open at a time."""
    chain = [_Level("", _open_folder(root, None, str(root)), caps.entries)]
    seen = 0
    try:
        while chain:
            entry = next(chain[-1].entries, None)
            if entry is None:
                os.close(chain.pop().number)
                continue
            seen += 1
            path, kind = chain[-1].prefix + entry[0], entry[1]
            if seen > caps.entries:
                raise CannotRead(f"there are more than {caps.entries} files and folders")
            yield path, kind
            if kind == _IS_FOLDER:
                if len(chain) >= caps.depth:
                    raise CannotRead(f"{shown(path[:200])} is deeper than {caps.depth} folders")
                number = _open_folder(entry[0], chain[-1].number, path)
                chain.append(_Level(path + "/", number, caps.entries))
    finally:
        for level in chain:
            os.close(level.number)


class _Level:
    """One open folder of a walk and what is still to be seen in it; read at once, so that no scan stays open."""

    def __init__(self, prefix: str, number: int, cap: int) -> None:
        self.prefix = prefix
        self.number = number
        try:
            with os.scandir(number) as scan:
                self.entries = iter([(entry.name, _kind_of(entry)) for entry in itertools.islice(scan, cap + 1)])
        except OSError as error:
            os.close(number)
            raise CannotRead(f"{shown(prefix) or 'the folder'} changes while it is read: {_reason(error)}") from error


def _kind_of(entry: os.DirEntry[str]) -> str:
    """Mostly known without asking the file system again."""
    if entry.is_file(follow_symlinks=False):
        return _IS_FILE
    if entry.is_dir(follow_symlinks=False):
        return _IS_FOLDER
    if entry.is_symlink():
        return _kind(stat.S_IFLNK)
    return _kind(entry.stat(follow_symlinks=False).st_mode)


def _open_folder(name: str | Path, folder: int | None, path: str) -> int:
    flags = _FOLDER if folder is not None else _FOLDER & ~os.O_NOFOLLOW  # the root itself is our own word
    try:
        return os.open(name, flags, dir_fd=folder)
    except OSError as error:
        raise CannotRead(f"{shown(path)} cannot be read: {_reason(error)}") from error


def _parts(path: str) -> list[str]:
    parts = path.split("/")
    if not path or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise CannotRead(f"'{shown(path)}' is not a path inside the folder")
    return parts


def _read_all(file: int, path: str, cap: int) -> bytes:
    """Everything in an open file; the cap holds even if the file grows meanwhile."""
    if (size := os.fstat(file).st_size) > cap:
        raise CannotRead(f"{shown(path)} has {size} bytes, more than {cap}")
    content = bytearray()
    while chunk := os.read(file, _CHUNK):
        content += chunk
        if len(content) > cap:
            raise CannotRead(f"{shown(path)} has more than {cap} bytes")
    return bytes(content)


def _write_new(path: Path, content: bytes, runnable: bool) -> None:
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(number, "wb") as file:
        file.write(content)
        os.fchmod(number, 0o755 if runnable else 0o644)


def _kind(mode: int) -> str:
    kinds = {stat.S_IFLNK: "a link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket", stat.S_IFDIR: _IS_FOLDER}
    return kinds.get(stat.S_IFMT(mode), "a device")


def _reason(error: OSError) -> str:
    """The system's reason, with what O_NOFOLLOW and O_NONBLOCK mean by theirs."""
    if error.errno in (errno.ELOOP, errno.ENOTDIR):  # a link where a file or folder was expected
        return "a link or a file stands in its way"
    return (error.strerror or "unknown reason").lower()
