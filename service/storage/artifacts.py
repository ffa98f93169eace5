"""Artifact stores: bytes by their sha256, on the filesystem or in the database, the same exam for both."""

import contextlib
import errno
import hashlib
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import BinaryIO, Protocol

from sqlalchemy import Engine, select

from service.errors import BadInput, NotFound, Unavailable
from service.storage.rows import Blob
from service.storage.tables import blobs
from service.storage.teams import insert_or_ignore


class ArtifactStore(Protocol):
    """Keeps bytes under their digest; putting the same bytes twice keeps them once."""

    def put(self, data: bytes) -> Blob:
        """Keep the bytes, durably, before returning."""

    def put_file(self, path: Path) -> Blob:
        """Keep a file of ours, whatever its size."""

    def get(self, sha256: str) -> bytes:
        """The bytes, verified against their digest."""


class Damaged(Unavailable):
    """What is stored is not what was put there."""


def _digest_within(data: bytes, max_bytes: int) -> str:
    if len(data) > max_bytes:
        raise BadInput(
            f"an artifact of {len(data):,} bytes is over the cap of {max_bytes:,}; raise ASSAY_ARTIFACT_MAX_BYTES"
        )
    return hashlib.sha256(data).hexdigest()


def _verified(sha256: str, data: bytes) -> bytes:
    if hashlib.sha256(data).hexdigest() != sha256:
        raise Damaged(f"artifact {sha256[:12]} does not have the digest it is stored under; restore it from a backup")
    return data


_UNFINISHED_SECONDS = 86_400.0


class FilesystemArtifacts:
    """Two levels of folders by digest; written aside, synced, then renamed into place."""

    def __init__(self, root: Path, max_bytes: int) -> None:
        self._root = root
        self._aside = root / ".new"
        self._max_bytes = max_bytes
        self._remove_unfinished()

    def _remove_unfinished(self) -> None:
        """What a writer that was killed left; nobody writes one file for a day."""
        with contextlib.suppress(OSError):  # no folder yet, not ours to clear, or somebody else was faster
            for path in self._aside.iterdir():
                if time.time() - path.stat().st_mtime > _UNFINISHED_SECONDS:
                    path.unlink(missing_ok=True)

    def put(self, data: bytes) -> Blob:
        sha256 = _digest_within(data, self._max_bytes)
        path = self._path(sha256)
        if not path.exists():
            self._write(path, data)
        return Blob(sha256, len(data))

    def put_file(self, path: Path) -> Blob:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        if not self._path(sha256).exists():
            self._write(self._path(sha256), path)
        return Blob(sha256, path.stat().st_size)

    def get(self, sha256: str) -> bytes:
        try:
            return _verified(sha256, self._path(sha256).read_bytes())
        except FileNotFoundError as error:
            raise NotFound(f"artifact {sha256[:12]} is not in {self._root}; was the folder moved?") from error

    def _path(self, sha256: str) -> Path:
        return self._root / sha256[:2] / sha256[2:]

    def _write(self, path: Path, source: bytes | Path) -> None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._aside.mkdir(exist_ok=True)
            handle, aside = tempfile.mkstemp(dir=self._aside)
            try:
                with os.fdopen(handle, "wb") as file:
                    _pour(source, file)
                    file.flush()
                    os.fsync(file.fileno())
                Path(aside).rename(path)
            except BaseException:
                Path(aside).unlink(missing_ok=True)
                raise
        except OSError as error:
            remedy = "free some space" if error.errno == errno.ENOSPC else "check that the folder is writable"
            raise Unavailable(f"cannot write artifacts to {self._root}: {error.strerror}; {remedy}") from error


def _pour(source: bytes | Path, file: BinaryIO) -> None:
    if isinstance(source, bytes):
        file.write(source)
        return
    with source.open("rb") as taken:
        shutil.copyfileobj(taken, file, 1 << 20)


class DatabaseArtifacts:
    """One row per digest."""

    def __init__(self, engine: Engine, max_bytes: int) -> None:
        self._engine = engine
        self._max_bytes = max_bytes

    def put(self, data: bytes) -> Blob:
        return self._insert(_digest_within(data, self._max_bytes), data)

    def put_file(self, path: Path) -> Blob:
        data = path.read_bytes()
        return self._insert(hashlib.sha256(data).hexdigest(), data)

    def _insert(self, sha256: str, data: bytes) -> Blob:
        with self._engine.begin() as connection:
            row = {"sha256": sha256, "size": len(data), "data": data}
            connection.execute(insert_or_ignore(connection, blobs).values(**row))
        return Blob(sha256, len(data))

    def get(self, sha256: str) -> bytes:
        with self._engine.begin() as connection:
            data = connection.execute(select(blobs.c.data).where(blobs.c.sha256 == sha256)).scalar_one_or_none()
        if data is None:
            raise NotFound(f"artifact {sha256[:12]} is not in the database")
        return _verified(sha256, bytes(data))
