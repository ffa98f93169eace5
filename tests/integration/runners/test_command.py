"""The runner `command` in the real sandbox."""

from pathlib import Path
from typing import Any

import pytest

from schemas.states import Outcome
from service.errors import StageFailed
from service.runners.command import CommandRunner
from service.sandbox import Sandbox


def test_a_program_of_the_machine_is_shown_where_it_lies_and_its_folder_is_not(
    sandbox: Sandbox, assign: Any, work: Path
) -> None:
    (work / "tools").mkdir()
    (work / "tools" / "agent.sh").write_text('ls "$(dirname "$0")" | tee seen.txt; cat "$ASSAY_SKILL_DIR/SKILL.md"\n')
    (work / "tools" / "secret.txt").write_text("x")
    command = ("/bin/bash", str(work / "tools" / "agent.sh"), str(work / "tools"))
    assignment = assign(command=command)

    execution = CommandRunner(sandbox).run(assignment)

    assert (assignment.workspace / "seen.txt").read_text().split() == ["agent.sh"]
    assert "Release notes" in execution.transcript


def test_no_command_is_shown_a_file_of_the_installation(sandbox: Sandbox, assign: Any, work: Path) -> None:
    (work / "data").mkdir()
    (work / "data" / "assay.db").write_text("everything")
    (work / "innocent").symlink_to(work / "data" / "assay.db")
    runner = CommandRunner(sandbox, closed=[work / "data"])

    for name in ("data/assay.db", "innocent"):
        with pytest.raises(StageFailed, match="belongs to this installation") as raised:
            runner.run(assign(command=("/bin/cat", str(work / name))))

        assert raised.value.outcome is Outcome.EXECUTOR_ERROR
