"""A snapshot of a skill: its words, its files, its digest."""

import re
from pathlib import Path

import pytest

from service.errors import BadInput
from service.files import resolve_files
from service.skills import Withheld, front_matter, lay_out, take_snapshot
from service.storage.artifacts import FilesystemArtifacts


def write_skill(folder: Path, body: str = "Do it well.") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(f"---\nname: my-skill\ndescription: >\n  says what\n  it does\n---\n{body}\n")
    return folder


@pytest.fixture
def artifacts(tmp_path: Path) -> FilesystemArtifacts:
    return FilesystemArtifacts(tmp_path / "artifacts", 10_000)


def test_name_and_description_come_from_the_front_matter(tmp_path: Path, artifacts: FilesystemArtifacts) -> None:
    snapshot = take_snapshot(write_skill(tmp_path / "folder"), artifacts)

    assert (snapshot.name, snapshot.description) == ("my-skill", "says what it does")


def test_without_front_matter_the_folder_gives_the_name(tmp_path: Path, artifacts: FilesystemArtifacts) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "SKILL.md").write_text("no front matter")

    assert take_snapshot(tmp_path / "plain", artifacts).name == "plain"
    assert front_matter("--- not closed\nname: x") == {}


def test_the_digest_changes_with_any_file_and_with_nothing_else(tmp_path: Path, artifacts: FilesystemArtifacts) -> None:
    skill = write_skill(tmp_path / "one")
    first = take_snapshot(skill, artifacts).digest
    (tmp_path / "two").mkdir()
    twin = take_snapshot(write_skill(tmp_path / "two"), artifacts).digest
    (skill / "extra.md").write_text("more")

    assert first == twin
    assert take_snapshot(skill, artifacts).digest != first


def test_agents_never_get_the_suite_or_the_history(tmp_path: Path, artifacts: FilesystemArtifacts) -> None:
    skill = write_skill(tmp_path / "skill")
    for hidden in ("evals/evals.json", ".git/config", "__pycache__/x.pyc"):
        (skill / hidden).parent.mkdir(exist_ok=True)
        (skill / hidden).write_text("secret")

    assert set(take_snapshot(skill, artifacts).files) == {"SKILL.md"}


def test_a_snapshot_is_laid_out_as_it_was(tmp_path: Path, artifacts: FilesystemArtifacts) -> None:
    skill = write_skill(tmp_path / "skill")
    (skill / "scripts").mkdir()
    (skill / "scripts" / "run.sh").write_text("#!/bin/sh\n")
    (skill / "scripts" / "run.sh").chmod(0o755)
    snapshot = take_snapshot(skill, artifacts)

    lay_out(snapshot.files, tmp_path / "copy", artifacts)

    assert (tmp_path / "copy" / "scripts" / "run.sh").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "copy" / "SKILL.md").read_bytes() == (skill / "SKILL.md").read_bytes()


def test_a_link_that_leaves_the_skill_is_refused(tmp_path: Path, artifacts: FilesystemArtifacts) -> None:
    skill = write_skill(tmp_path / "skill")
    (skill / "passwords").symlink_to("/etc/passwd")

    with pytest.raises(BadInput, match="link that leaves the skill"):
        take_snapshot(skill, artifacts)


@pytest.mark.parametrize("what", ["nothing", "file", "empty"])
def test_what_is_no_skill_is_refused(what: str, tmp_path: Path, artifacts: FilesystemArtifacts) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "empty").mkdir()

    with pytest.raises(BadInput, match=r"SKILL\.md"):
        take_snapshot(tmp_path / what, artifacts)


SUITE = b'{"skill_name": "s", "evals": [{"id": 1, "prompt": "p", "expectations": ["e"]}]}'


@pytest.fixture
def tested_skill(tmp_path: Path) -> Path:
    skill = write_skill(tmp_path / "skill")
    for name in ("references", "evals/files/draft", "evals/files/repo/evals", ".git"):
        (skill / name).mkdir(parents=True)
    (skill / "references" / "rules.md").write_text("A rule that nobody writes down twice by chance. " * 3)
    (skill / "evals" / "evals.json").write_bytes(SUITE)
    (skill / "evals" / "old-evals.json").write_bytes(SUITE.replace(b'"p"', b'"q"'))
    (skill / "evals" / "simulation.json").write_text('{"agent": []}')
    (skill / "evals" / "files" / "data.json").write_text('{"rows": []}')
    (skill / "evals" / "files" / "draft" / "SKILL.md").write_text(
        "another skill altogether, to be reviewed by this one"
    )
    (skill / "evals" / "files" / "repo" / "evals" / "evals.json").write_bytes(SUITE.replace(b'"p"', b'"of a fixture"'))
    (skill / "evals" / "files" / "copy.md").write_bytes((skill / "references" / "rules.md").read_bytes())
    (skill / "evals" / "files" / "link.md").symlink_to(skill / "SKILL.md")
    (skill / "evals" / "files" / "same.json").write_bytes(SUITE)
    return skill


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("evals.json", "'evals.json' tells what the suite asks for"),
        ("evals/evals.json", "tells what the suite asks for"),
        ("evals/old-evals.json", "tells what the suite asks for"),
        ("evals/simulation.json", "tells what the suite asks for"),
        ("evals/files/same.json", "tells what the suite asks for"),
        (".git", "tells what the suite asks for"),
        ("evals", "'evals' holds evals.json, which tells what the suite asks for"),
        (".", "'.' holds "),
        ("SKILL.md", "is part of the skill, .* give the case a file of its own in evals/files/"),
        ("references", "holds rules.md, which is part of the skill"),
        ("link.md", "is part of the skill"),
        ("copy.md", "is a copy of the skill's references/rules.md"),
    ],
)
def test_no_case_is_given_the_skill_or_its_suite(tested_skill: Path, name: str, words: str) -> None:
    (tested_skill / ".git" / "HEAD").write_text("ref: refs/heads/main")
    found, findings = resolve_files([name], tested_skill, at="evals[3].files", refuse=Withheld(tested_skill, SUITE))

    [finding] = findings
    assert found == () and (finding.path, finding.code) == ("evals[3].files[0]", "withheld_input")
    assert re.search(words, finding.message)


@pytest.mark.parametrize("name", ["evals/files/data.json", "draft/SKILL.md", "draft", "evals/files/repo"])
def test_files_beside_the_suite_are_inputs(tested_skill: Path, name: str) -> None:
    [found], findings = resolve_files([name], tested_skill, refuse=Withheld(tested_skill, SUITE))

    assert found.name == name and "withheld_input" not in [finding.code for finding in findings]


@pytest.mark.parametrize("name", ["a/b", "/", "..", "tab\there", "nul\0", "del\x7f"])
def test_a_name_that_no_address_can_hold_is_refused(tmp_path: Path, name: str) -> None:
    skill = tmp_path / "skill"
    skill.mkdir()
    (skill / "SKILL.md").write_text(f"---\nname: {name}\n---\n", newline="")

    with pytest.raises(BadInput, match=r"no / and no control characters"):
        take_snapshot(skill, FilesystemArtifacts(tmp_path / "kept", 10_000))


@pytest.mark.parametrize("name", ["csv-summary", "Ünïcode näme", "a.b", "100%", "c#?"])
def test_any_other_name_is_fine(tmp_path: Path, name: str) -> None:
    skill = tmp_path / "skill"
    skill.mkdir()
    (skill / "SKILL.md").write_text(f"---\nname: {name}\n---\n")

    assert take_snapshot(skill, FilesystemArtifacts(tmp_path / "kept", 10_000)).name == name
