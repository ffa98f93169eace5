"""Which files of its skill an agent opened."""

from pathlib import Path
from typing import Any

import pytest

from service.runners.arms import canary_of, plant
from service.runners.commands import Places
from service.runners.skill_watch import SkillWatch, StagedSkill

CANARY = canary_of("secret", "batch", "digest")
OTHER = canary_of("secret", "batch", "other digest")
HOME = "/home/user"
RULE = "Always count the syllables of each line."
SEASON = "Spring is told by blossoms, autumn by the moon."
BOTH = "This line stands in two files of the skill."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    skill = tmp_path / "haiku"
    (skill / "references").mkdir(parents=True)
    (skill / "scripts").mkdir()
    (skill / "SKILL.md").write_text(f"---\nname: haiku\ndescription: Use for haiku.\n---\n{RULE}\n{BOTH}\n")
    (skill / "references" / "season.md").write_text(f"# Words\n\n{SEASON}\n{BOTH}\n")
    (skill / "references" / "two words.md").write_text("short\n")
    (skill / "scripts" / "count.py").write_text("import sys\n")
    plant(skill, CANARY)
    return skill


def watch(folder: Path, directory: str = "/skill/haiku", given: frozenset[str] = frozenset()) -> SkillWatch:
    return SkillWatch(StagedSkill(folder, directory, Places("/workspace", HOME), given), CANARY, OTHER)


def bash(command: str) -> tuple[str, dict[str, Any]]:
    return "Bash", {"command": command}


READ = [
    (("Read", {"file_path": "/skill/haiku/SKILL.md"}), "", ("SKILL.md",)),
    (("Read", {"file_path": "../skill/haiku/./references/two words.md"}), "", ("references/two words.md",)),
    (bash("cd /skill/haiku && head -5 SKILL.md"), "---\nname: haiku", ("SKILL.md",)),
    (bash("cat '/skill/haiku/references/two words.md'"), "short", ("references/two words.md",)),
    (bash("cat /skill/haiku/references/two\\ words.md | head"), "short", ("references/two words.md",)),
    (bash("X=1 python3 /skill/haiku/scripts/count.py < in.txt; ls /skill/haiku/SKILL.md"), "5", ("scripts/count.py",)),
    (bash("# look\nfor f in a; do cat /skill/haiku/scripts/*.py; done"), "import sys", ("scripts/count.py",)),
    (bash("test -f /skill/haiku/SKILL.md && wc -l < /skill/haiku/scripts/count.py"), "1", ()),
    (bash("cd ../skill; cat */refer*/s*"), f"# Words\n\n{SEASON}", ("references/season.md",)),
    (bash("sh -c 'cat /skill/*/SKILL.md'"), RULE, ("SKILL.md",)),
    (("Grep", {"pattern": "moon", "path": "/skill/haiku"}), "references/season.md", ("references/season.md",)),
    (
        ("Grep", {"pattern": "moon", "path": "/skill"}),
        f"haiku/references/season.md:3:{SEASON}",
        ("references/season.md",),
    ),
    (("Grep", {"pattern": "moon", "path": "/skill/haiku/SKILL.md"}), "no matches found", ()),
    (("Read", {"file_path": "copy.md"}), f"     3\t{SEASON}", ("references/season.md",)),
    (("Unheard", {"of": "it"}), f"<!-- {CANARY} -->", ("SKILL.md",)),
]


@pytest.mark.parametrize(("use", "answer", "files"), READ, ids=lambda value: str(value)[:60])
def test_what_an_agent_reads_by_any_way_is_noted(
    folder: Path, use: tuple[str, Any], answer: str, files: tuple[str, ...]
) -> None:
    seen = watch(folder)

    seen.see(*use, answer)

    assert (seen.files_read, seen.used) == (files, bool(files))


@pytest.mark.parametrize(
    ("use", "answer"),
    [
        (("Write", {"file_path": "a.md", "content": f"see /skill/haiku/SKILL.md\n{RULE}"}), f"created a.md\n{RULE}"),
        (("Edit", {"file_path": "a.md", "old_string": "x", "new_string": RULE}), f"     1\t{RULE}"),
        (bash("ls /skill/haiku/SKILL.md; ls -R /skill"), "/skill/haiku/SKILL.md\nreferences"),
        (bash("find /skill/haiku/SKILL.md -newer a.md"), "/skill/haiku/SKILL.md"),
        (bash("echo 'look at /skill/haiku/SKILL.md' >> notes.md"), ""),
        (bash("cat > notes.md <<'END'\ncat /skill/haiku/SKILL.md\nEND"), ""),
        (bash("cat a.md > /skill/haiku/SKILL.md"), ""),
        (bash("cat SKILL.md"), "my own notes"),
        (bash("# cat /skill/haiku/SKILL.md"), ""),
        (("Glob", {"pattern": "**/*.md", "path": "/skill/haiku"}), "SKILL.md\nreferences/season.md"),
        (("Read", {"file_path": "a.md"}), f"     1\t{BOTH}\n     2\tUse for haiku."),
    ],
    ids=lambda value: str(value)[:60],
)
def test_what_an_agent_only_names_or_writes_is_not(folder: Path, use: tuple[str, Any], answer: str) -> None:
    seen = watch(folder)

    seen.see(*use, answer)

    assert seen.files_read == ()


def test_a_command_that_failed_counts_by_what_it_showed(folder: Path) -> None:
    seen = watch(folder)
    seen.see(*bash("cat /skill/haiku/SKILL.md"), "no such file", is_error=True)
    assert not seen.used

    seen.see(*bash("cat /skill/haiku/references/season.md; false"), f"{SEASON}\n(exit code 1)", is_error=True)

    assert seen.files_read == ("references/season.md",)


def test_lines_that_the_agent_was_given_prove_nothing(folder: Path) -> None:
    seen = watch(folder, given=frozenset({SEASON}))

    seen.see("Read", {"file_path": "input.md"}, SEASON)

    assert not seen.used


def test_a_skill_in_the_agents_home_is_found_by_its_short_path(folder: Path) -> None:
    for command in ("cat ~/.claude/skills/haiku/SKILL.md", 'cat "$HOME/.claude/skills/haiku/SKILL.md"'):
        seen = watch(folder, f"{HOME}/.claude/skills/haiku")

        seen.see(*bash(command), "---")

        assert seen.files_read == ("SKILL.md",)


def test_the_canary_of_the_other_skill_is_noted_apart(folder: Path) -> None:
    for seen in (SkillWatch(None, None, OTHER), watch(folder)):
        seen.see(*bash("cat leaked.md"), f"# Haiku\n<!-- {OTHER} -->")

        assert seen.saw_other and not seen.used


def test_nonsense_is_watched_without_harm(folder: Path) -> None:
    seen = watch(folder)

    for asked in (None, [], "text", {"command": "cat 'open"}, {"command": "((((;;;&&|<<<"}, {"file_path": 7}):
        for tool in ("Bash", "Read", "Grep", "Nothing"):
            seen.see(tool, asked, "\0\ud800")

    assert not seen.used
