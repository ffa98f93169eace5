"""One exam for both artifact stores."""

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import update

from service.errors import BadInput, NotFound, Unavailable
from service.storage.artifacts import ArtifactStore, Damaged, DatabaseArtifacts, FilesystemArtifacts
from service.storage.store import Store
from service.storage.tables import blobs


@pytest.fixture(params=["filesystem", "database"])
def kept(request: pytest.FixtureRequest, store: Store, tmp_path: Path) -> tuple[ArtifactStore, Callable[[str], None]]:
    if request.param == "filesystem":
        root = tmp_path / "artifacts"
        return FilesystemArtifacts(
            root, 1000
        ), lambda digest: (root / digest[:2] / digest[2:]).write_bytes(b"x") and None

    def damage(digest: str) -> None:
        with store.engine.begin() as connection:
            connection.execute(update(blobs).where(blobs.c.sha256 == digest).values(data=b"x"))

    return DatabaseArtifacts(store.engine, 1000), damage


Kept = tuple[ArtifactStore, Callable[[str], None]]


def test_bytes_come_back_as_they_went_in(kept: Kept) -> None:
    artifacts, _ = kept
    data = bytes(range(256))

    blob = artifacts.put(data)

    assert blob.sha256 == hashlib.sha256(data).hexdigest() and blob.size == 256
    assert artifacts.get(blob.sha256) == data


def test_the_same_bytes_twice_are_one(kept: Kept) -> None:
    artifacts, _ = kept

    assert artifacts.put(b"same") == artifacts.put(b"same")


def test_nothing_is_kept_beyond_the_cap(kept: Kept) -> None:
    artifacts, _ = kept

    artifacts.put(b"x" * 1000)
    with pytest.raises(BadInput, match="1,001 bytes"):
        artifacts.put(b"x" * 1001)


def test_what_is_not_there_is_not_found(kept: Kept) -> None:
    artifacts, _ = kept

    with pytest.raises(NotFound):
        artifacts.get("0" * 64)


def test_damage_is_seen_when_reading(kept: Kept) -> None:
    artifacts, damage = kept
    blob = artifacts.put(b"whole")
    damage(blob.sha256)

    with pytest.raises(Damaged, match="does not have the digest"):
        artifacts.get(blob.sha256)


def test_a_folder_that_cannot_be_written_is_one_sentence_and_leaves_nothing(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")

    with pytest.raises(Unavailable, match="cannot write artifacts to"):
        FilesystemArtifacts(blocked / "artifacts", 1000).put(b"x")
    assert os.listdir(tmp_path) == ["file"]


def test_what_a_killed_writer_left_is_removed_once_it_is_old(tmp_path: Path) -> None:
    kept = FilesystemArtifacts(tmp_path, 1_000).put(b"whole")
    for name, age in (("young", 60), ("old", 100_000)):
        path = tmp_path / ".new" / name
        path.write_bytes(b"half")
        os.utime(path, (time.time() - age,) * 2)

    again = FilesystemArtifacts(tmp_path, 1_000)

    assert [path.name for path in (tmp_path / ".new").iterdir()] == ["young"]
    assert again.get(kept.sha256) == b"whole"
