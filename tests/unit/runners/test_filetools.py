"""The file tools, as they run inside the sandbox."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from service.runners import filetools


@pytest.fixture
def roots(tmp_path: Path) -> list[str]:
    workspace, skill = tmp_path / "workspace", tmp_path / "skill"
    workspace.mkdir()
    skill.mkdir()
    (tmp_path / "secret.txt").write_text("secret")
    (skill / "SKILL.md").write_text("# Rules\n")
    return [str(workspace), str(skill)]


def use(tool: str, roots: list[str], **asked: Any) -> str:
    return filetools.DOING[tool](asked, roots)


def test_a_file_is_read_with_line_numbers_and_in_parts(roots: list[str]) -> None:
    Path(roots[0], "a.txt").write_text("\n".join(f"line {number}" for number in range(1, 11)))

    part = use("Read", roots, file_path="a.txt", offset=3, limit=2)

    assert part == "     3\tline 3\n     4\tline 4\n(6 more lines; read on with offset 5)"


def test_a_write_makes_its_folders_and_says_what_it_did(roots: list[str]) -> None:
    assert use("Write", roots, file_path="deep/er/a.txt", content="x").startswith("created")
    assert use("Write", roots, file_path="deep/er/a.txt", content="y").startswith("updated")
    assert Path(roots[0], "deep/er/a.txt").read_text() == "y"


def test_an_edit_replaces_one_place_or_all(roots: list[str]) -> None:
    Path(roots[0], "a.txt").write_text("one two one")

    with pytest.raises(filetools.ToolError, match="2 times"):
        use("Edit", roots, file_path="a.txt", old_string="one", new_string="1")
    with pytest.raises(filetools.ToolError, match="not in"):
        use("Edit", roots, file_path="a.txt", old_string="three", new_string="3")
    use("Edit", roots, file_path="a.txt", old_string="one", new_string="1", replace_all=True)

    assert Path(roots[0], "a.txt").read_text() == "1 two 1"


@pytest.mark.parametrize("path", ["../secret.txt", "/etc/passwd", "link", "folder/secret.txt", "../../etc/shadow"])
def test_nothing_outside_of_the_roots_is_touched(roots: list[str], path: str) -> None:
    Path(roots[0], "link").symlink_to(Path(roots[0]).parent / "secret.txt")
    Path(roots[0], "folder").symlink_to(Path(roots[0]).parent)

    with pytest.raises(filetools.ToolError, match="outside"):
        use("Read", roots, file_path=path)
    with pytest.raises(filetools.ToolError, match="outside"):
        use("Write", roots, file_path=path, content="x")


def test_the_skill_can_be_read_by_its_absolute_path(roots: list[str]) -> None:
    assert "# Rules" in use("Read", roots, file_path=f"{roots[1]}/SKILL.md")


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.md", ["a.md", "deep/b.md"]),
        ("deep/*.md", ["deep/b.md"]),
        ("**/*.txt", ["deep/er/c.txt"]),
        ("deep/**", ["deep/b.md", "deep/er/c.txt"]),
        ("[ab].m?", ["a.md", "deep/b.md"]),
        ("[!a].md", ["deep/b.md"]),
        ("*.css", ["no files found"]),
    ],
)
def test_globs_find_what_they_name(roots: list[str], pattern: str, found: list[str]) -> None:
    for name in ("a.md", "deep/b.md", "deep/er/c.txt"):
        use("Write", roots, file_path=name, content="x")

    assert sorted(use("Glob", roots, pattern=pattern).splitlines()) == found


def test_grep_answers_with_files_lines_or_counts(roots: list[str]) -> None:
    use("Write", roots, file_path="a.md", content="Alpha\nbeta\nalpha")
    use("Write", roots, file_path="b.txt", content="alpha")
    Path(roots[0], "binary").write_bytes(b"alpha\0")

    assert use("Grep", roots, pattern="alpha").splitlines() == ["a.md", "b.txt"]
    assert use("Grep", roots, pattern="alpha", output_mode="content", **{"-i": True}, glob="*.md").splitlines() == [
        "a.md:1:Alpha",
        "a.md:3:alpha",
    ]
    assert use("Grep", roots, pattern="a", output_mode="count", path="a.md") == "a.md:3"
    assert use("Grep", roots, pattern="gamma") == "no matches found"
    with pytest.raises(filetools.ToolError, match="regular expression"):
        use("Grep", roots, pattern="(")


def test_special_and_huge_files_are_refused(roots: list[str]) -> None:
    with Path(roots[0], "huge").open("wb") as file:
        file.truncate(filetools.MAX_FILE_BYTES + 1)
    Path(roots[0], "binary").write_bytes(b"\0\1")

    for name, reason in (("huge", "more than"), ("binary", "binary"), (".", "folder"), ("none", "No such file")):
        with pytest.raises(filetools.ToolError, match=reason):
            use("Read", roots, file_path=name)


def test_as_a_program_it_always_answers_in_json(roots: list[str]) -> None:
    source = Path(filetools.__file__).read_text()
    answers = []
    for asked in ({"file_path": "../secret.txt"}, {"file_path": 7}, {}):
        question = json.dumps({"tool": "Read", "input": asked, "roots": roots})
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-c", source], input=question, capture_output=True, text=True
        )
        answers.append(json.loads(done.stdout))

    assert all(answer["is_error"] for answer in answers)
    assert not any("secret" in answer["text"].replace("secret.txt", "") for answer in answers)
