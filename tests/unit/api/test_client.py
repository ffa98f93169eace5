"""The Python client: archives that are the same for the same files, and events as they were sent."""

import io
import tarfile
from pathlib import Path

import httpx2
import pytest

from cli.client import Busy, Client, error_of, packed, parsed_events
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


def test_a_watcher_that_came_too_often_waits_as_long_as_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = {"type": "urn:assay:problem:too-many", "detail": "come again"}
    answers = [
        httpx2.Response(429, json=busy, headers={"Retry-After": "7"}),
        httpx2.Response(429, json=busy),
        httpx2.Response(200, text='event: progress\ndata: {"settled": 1}\n\nevent: end\ndata: {}\n\n'),
    ]
    slept: list[float] = []
    monkeypatch.setattr("cli.client.time.sleep", slept.append)
    assay = Client("http://assay.example")
    assay._http = httpx2.Client(
        base_url="http://assay.example", transport=httpx2.MockTransport(lambda _: answers.pop(0))
    )

    with assay:
        assert list(assay.watch("batch")) == [{"settled": 1}]

    assert slept == [7.0, 1.0]


def test_a_request_that_came_too_often_says_when_to_come_again() -> None:
    answer = httpx2.Response(429, json={"detail": "come again in 3 s"}, headers={"Retry-After": "3"})

    error = error_of(answer)

    assert isinstance(error, Busy) and (str(error), error.retry_after_seconds) == ("come again in 3 s", 3.0)
