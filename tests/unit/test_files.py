"""Where the input files of a case are found, and which are refused."""

from pathlib import Path

import pytest

from schemas.findings import Level
from service.files import resolve_files


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    folder = tmp_path / "skill"
    (folder / "evals" / "files").mkdir(parents=True)
    return folder


def put(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(path.parent.name)
    return path.resolve()


PLACES = [
    ("skill/a.txt", "the skill root"),
    ("skill/evals/a.txt", "evals/"),
    ("skill/evals/files/a.txt", "evals/files/"),
    ("work/a.txt", "the workspace"),
]


@pytest.mark.parametrize(("place", "words"), PLACES)
def test_a_file_is_found_in_each_place(tmp_path: Path, skill: Path, place: str, words: str) -> None:
    path = put(tmp_path / place)

    [found], findings = resolve_files(["a.txt"], skill, tmp_path / "work")

    assert (found.name, found.path, found.base) == ("a.txt", path, words)
    assert [finding.level for finding in findings] == ([] if words == "the skill root" else [Level.NOTE])


def test_the_places_are_tried_in_order(tmp_path: Path, skill: Path) -> None:
    for place, words in reversed(PLACES):
        put(tmp_path / place)

        [found], _ = resolve_files(["a.txt"], skill, tmp_path / "work")

        assert found.base == words


def test_what_is_nowhere_is_an_error_that_names_the_places(tmp_path: Path, skill: Path) -> None:
    found, [finding] = resolve_files(["a.txt"], skill, tmp_path / "work", at="evals[2].files")

    assert found == () and (finding.level, finding.path, finding.code) == (
        Level.ERROR,
        "evals[2].files[0]",
        "file_missing",
    )
    assert finding.message == "there is no 'a.txt'; looked in the skill root, evals/, evals/files/, the workspace"


@pytest.mark.parametrize(
    "name",
    ["/etc/passwd", "../a.txt", "evals/../../a.txt", "..\\a.txt", "C:\\a.txt", "C:a.txt", "\\\\host\\a", "", " "],
)
def test_paths_that_leave_the_skill_are_refused(tmp_path: Path, skill: Path, name: str) -> None:
    put(tmp_path / "a.txt")

    found, [finding] = resolve_files([name], skill)

    assert found == () and (finding.level, finding.code) == (Level.ERROR, "forbidden_path")


def test_a_link_inside_the_skill_is_followed(skill: Path) -> None:
    path = put(skill / "data" / "a.txt")
    (skill / "link.txt").symlink_to(path)

    [found], findings = resolve_files(["link.txt"], skill)

    assert found.path == path and findings == ()


def test_links_that_leave_the_skill_are_refused(tmp_path: Path, skill: Path) -> None:
    (skill / "file").symlink_to(put(tmp_path / "secret.txt"))
    (skill / "folder").symlink_to(tmp_path)
    (skill / "nowhere").symlink_to(skill / "missing")
    (skill / "circle").symlink_to(skill / "circle")
    (skill / "data").mkdir()
    (skill / "data" / "inner").symlink_to(tmp_path / "secret.txt")

    found, findings = resolve_files(["file", "folder/secret.txt", "nowhere", "circle", "data"], skill)

    assert found == () and [finding.code for finding in findings] == ["link_leaves"] * 5


def test_a_refused_link_does_not_hide_behind_a_good_file_elsewhere(tmp_path: Path, skill: Path) -> None:
    (skill / "a.txt").symlink_to(put(tmp_path / "secret.txt"))
    put(skill / "evals" / "a.txt")

    found, [finding] = resolve_files(["a.txt"], skill)

    assert found == () and finding.code == "link_leaves"


def test_a_folder_is_an_input_too(skill: Path) -> None:
    put(skill / "fixtures" / "repo" / "a.txt")

    [found], findings = resolve_files(["fixtures/repo"], skill)

    assert found.path.is_dir() and findings == ()
