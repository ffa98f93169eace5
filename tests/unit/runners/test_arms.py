"""Proof of the arm: canary and digests."""

import shutil
from pathlib import Path

import pytest

from schemas.states import Outcome
from service.errors import StageFailed
from service.runners.arms import SKILL_AT, Arm, canary_of, file_digests, plant, without_canary

CANARY = canary_of("secret", "batch", "digest")
OWN = canary_of("secret", "batch", "own digest")
PAGE = "# Haiku\n\nAlways count syllables: five, seven, five. Mention a season word in the first line.\n"


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    folder = tmp_path / "haiku"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(PAGE)
    (folder / "scripts" / "count.py").write_text("print('counting syllables of a line, one after the other')\n" * 2)
    (folder / "LICENSE").write_text("a licence that many folders have " * 9)
    (folder / "tiny.txt").write_text("x")
    return folder


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    for name in ("workspace", "home", "tmp"):
        (folder / name).mkdir(parents=True)
    (folder / "workspace" / "input.csv").write_text("a,b\n")
    return folder


def control(skill: Path) -> Arm:
    return Arm(CANARY, False, file_digests(skill))


def test_a_planted_canary_can_be_taken_out_again_without_a_trace(skill: Path) -> None:
    plant(skill, CANARY)
    plant(skill, CANARY)
    text = (skill / "SKILL.md").read_text()

    assert text.count(CANARY) == 1
    assert without_canary(text).strip() == PAGE.strip()


def test_a_clean_control_arm_passes(skill: Path, run_folder: Path) -> None:
    arm = control(skill)

    arm.check_before(run_folder)
    arm.check_after(run_folder, b"transcript", b"events")


def test_only_telling_files_count(skill: Path) -> None:
    assert sorted(file_digests(skill).values()) == ["SKILL.md", "scripts/count.py"]
    allowed = [digest for digest, path in file_digests(skill).items() if path == "SKILL.md"]
    assert list(file_digests(skill, allowed).values()) == ["scripts/count.py"]


@pytest.mark.parametrize("name", ["workspace/.hidden/notes.md", "tmp/x", "home/.cache/y"])
def test_a_copy_of_the_skill_anywhere_is_a_contaminated_control(skill: Path, run_folder: Path, name: str) -> None:
    (run_folder / name).parent.mkdir(parents=True, exist_ok=True)
    (run_folder / name).write_bytes((skill / "scripts/count.py").read_bytes())

    with pytest.raises(StageFailed, match=r"copy of the skill's scripts/count\.py") as raised:
        control(skill).check_before(run_folder)

    assert raised.value.outcome is Outcome.CONTAMINATED


def test_the_canary_in_an_output_or_transcript_is_a_contaminated_control(skill: Path, run_folder: Path) -> None:
    arm = control(skill)
    with pytest.raises(StageFailed, match="transcript"):
        arm.check_after(run_folder, f"... {CANARY} ...".encode())
    with pytest.raises(StageFailed, match="transcript"):
        arm.check_after(run_folder, b"", CANARY.encode())
    (run_folder / "workspace" / "out.md").write_text(f"# rules\n{CANARY}\n")

    with pytest.raises(StageFailed, match=r"out\.md holds the other skill's canary"):
        arm.check_after(run_folder)


def test_the_treatment_arm_may_hold_the_skill(skill: Path, run_folder: Path) -> None:
    plant(skill, OWN)
    (run_folder / "workspace" / "copy.md").write_bytes((skill / "SKILL.md").read_bytes())
    for arm in (Arm(None, True, {}), Arm(CANARY, True, {})):
        arm.check_before(run_folder)
        arm.check_after(run_folder, OWN.encode())


def test_an_arm_with_a_skill_must_not_show_the_canary_of_the_other_one(run_folder: Path) -> None:
    arm = Arm(CANARY, True, {})
    with pytest.raises(StageFailed, match="transcript"):
        arm.check_after(run_folder, CANARY.encode())
    (run_folder / "tmp" / "x").write_text(CANARY)

    with pytest.raises(StageFailed, match="tmp/x holds the other skill's canary"):
        arm.check_after(run_folder)


def test_a_canary_is_told_by_secret_batch_and_skill_alone() -> None:
    known = {canary_of(*parts) for parts in (("s", "b", "d"), ("s", "b", "e"), ("s", "c", "d"), ("t", "b", "d"))}

    assert len(known) == 4 and canary_of("s", "b", "d") in known


def test_an_arm_with_the_old_version_must_not_hold_the_new_one(skill: Path, run_folder: Path) -> None:
    plant(skill, CANARY)
    own = run_folder / SKILL_AT / "haiku"
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text(f"an older page\n<!-- {OWN} -->\n")
    arm = Arm(CANARY, True, file_digests(skill))

    arm.check_before(run_folder)
    (run_folder / "tmp" / "count.py").write_bytes((skill / "scripts/count.py").read_bytes())

    with pytest.raises(StageFailed, match=r"tmp/count\.py is a copy of the skill"):
        arm.check_after(run_folder)


def test_an_arm_without_a_skill_has_no_folder_that_is_passed_over(skill: Path, run_folder: Path) -> None:
    shutil.copytree(skill, run_folder / SKILL_AT / "haiku")

    with pytest.raises(StageFailed, match=r"skill/haiku/.* is a copy of the skill"):
        control(skill).check_before(run_folder)


@pytest.mark.parametrize("has_skill", [True, False])
def test_too_much_to_look_through_is_a_failure_of_every_arm(skill: Path, run_folder: Path, has_skill: bool) -> None:
    (run_folder / "tmp" / "/".join("d" * 70)).mkdir(parents=True)

    with pytest.raises(StageFailed, match="cannot be looked through") as raised:
        Arm(CANARY, has_skill, {} if has_skill else file_digests(skill)).check_after(run_folder)

    assert raised.value.outcome is Outcome.EXECUTOR_ERROR
