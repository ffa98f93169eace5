"""The Python client: archives that are the same for the same files, and events as they were sent."""

import io
import tarfile
from pathlib import Path

import pytest

from cli.client import packed, parsed_events
from service.errors import BadInput


def a_skill(folder: Path) -> Path:
    (folder / "evals" / "files").mkdir(parents=True)
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("x")
    (folder / "SKILL.md").write_text("---\nname: s\n---\n")
    (folder / "evals" / "evals.json").write_text("{}")
    (folder / "evals" / "files" / "in.csv").write_text("a,b\n")
    return folder


def test_a_folder_is_packed_with_its_evals_and_without_its_repository(tmp_path: Path) -> None:
    name, data = packed(a_skill(tmp_path / "s"))

    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        assert archive.getnames() == ["SKILL.md", "evals/evals.json", "evals/files/in.csv"]
    assert name == "s.tar.gz"


def test_the_same_files_give_the_same_archive(tmp_path: Path) -> None:
    first = packed(a_skill(tmp_path / "one" / "s"))
    second = packed(a_skill(tmp_path / "two" / "s"))

    assert first == second


def test_a_link_out_of_the_skill_is_not_sent(tmp_path: Path) -> None:
    skill = a_skill(tmp_path / "s")
    (skill / "secret").symlink_to("/etc/hostname")

    with pytest.raises(BadInput, match="leaves the skill"):
        packed(skill)


def test_what_is_no_skill_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no skill"):
        packed(tmp_path)


def test_events_are_read_as_they_were_sent() -> None:
    lines = [
        "retry: 1000",
        "",
        ": still here",
        "",
        "id: 7",
        "event: stage",
        'data: {"a": 1}',
        "",
        "event: end",
        "data: {}",
        "",
    ]

    assert list(parsed_events(iter(lines))) == [(7, "stage", {"a": 1}), (None, "end", {})]
