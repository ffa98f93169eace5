"""A benchmark says which folder its skill came from, as far as that is anybody's business."""

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.api import RUNNER, archive, finish, make_parts, work

from service.bootstrap import Parts
from service.regrade import RegradeRequest
from service.submitting import Submission
from service.uploads import Parcel


@pytest.fixture
def parts(tmp_path: Path) -> Iterator[Parts]:
    with zipfile.ZipFile(io.BytesIO(archive())) as packed:
        packed.extractall(tmp_path / "skills")
    made = make_parts(tmp_path)
    yield made
    made.close()


def told(parts: Parts, batch_id: str) -> Any:
    with parts.aggregate.aggregates(batch_id) as found:
        return found.metadata()["skill_path"]


@pytest.mark.parametrize(
    ("place", "named", "path"),
    [
        (".", "skills/tiny", "skills/tiny"),
        (".", "./skills/tiny/", "skills/tiny"),
        ("skills/tiny", ".", "tiny"),
        ("skills/tiny/evals", "..", "tiny"),
        (".", "{here}/skills/tiny", "tiny"),
    ],
)
def test_a_folder_is_told_as_it_was_named_without_the_machine_above_it(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str, named: str, path: str
) -> None:
    monkeypatch.chdir(tmp_path / place)

    accepted = parts.desk.submit(Submission(Path(named.format(here=tmp_path)), settings=RUNNER))

    assert told(parts, accepted.batch_id) == path


def test_an_archive_is_told_by_the_name_of_its_skill_and_a_regrade_by_what_it_regrades(
    parts: Parts, tmp_path: Path
) -> None:
    packed = tmp_path / "download-7.zip"
    packed.write_bytes(archive(name="booking"))

    batch = parts.uploads.submit(Parcel(packed, packed.name), Submission(Path(), settings=RUNNER)).batch_id

    assert told(parts, batch) == "booking"
    work(parts, batch, "default")
    finish(parts, batch)
    again = parts.regrade.accept(RegradeRequest(batch)).batch_id
    assert told(parts, again) == "booking"


def test_the_same_submit_from_another_folder_is_the_same_submit(
    parts: Parts, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    first, second = (
        parts.desk.submit(Submission(folder, settings=RUNNER, idempotency_key="once"))
        for folder in (Path("skills/tiny"), tmp_path / "skills" / "tiny")
    )
    assert (second.batch_id, second.is_new) == (first.batch_id, False)
