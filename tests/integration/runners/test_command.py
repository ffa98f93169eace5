"""The runner `command` in the real sandbox."""

import json
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


HOSTILE = {
    "deep": "[" * 100_000 + "]" * 100_000,
    "deep object": '{"a":' * 50_000 + "1" + "}" * 50_000,
    "not a number": '{"cost_usd": NaN}',
    "infinity": '{"cost_usd": -Infinity, "usage": {"input_tokens": Infinity}}',
    "overflow": '{"cost_usd": 1e999, "total_steps": 1e999}',
    "negative": '{"cost_usd": -5, "usage": {"input_tokens": -1}, "total_steps": -3}',
    "huge": '{"cost_usd": 1' + "0" * 400 + ', "usage": {"input_tokens": 1' + "0" * 400 + "}}",
    "endless": '{"total_steps": 1' + "0" * 10_000 + "}",
    "wrong types": '{"cost_usd": true, "usage": [1], "tool_calls": "x", "model": 7, "skill_used": 1, "transcript": {}}',
    "a list": "[1, 2]",
}


@pytest.mark.parametrize("by_file", [True, False], ids=["file", "last line"])
@pytest.mark.parametrize("said", HOSTILE.values(), ids=HOSTILE.keys())
def test_what_a_program_says_wrongly_of_itself_counts_as_not_said(
    sandbox: Sandbox, assign: Any, work: Path, said: str, by_file: bool
) -> None:
    (work / "said.json").write_text(said)
    to = '> "$ASSAY_RESULT_FILE"' if by_file else ""
    assignment = assign(command=("/bin/bash", "-c", f'cat "$0" {to}', str(work / "said.json")))

    execution = CommandRunner(sandbox).run(assignment)

    assert (execution.cost_usd, execution.model, execution.skill_used) == (None, None, None)
    assert execution.usage.total is None
    assert (execution.metrics.tool_calls, execution.metrics.total_steps) == ({}, 1)


def test_words_that_no_database_keeps_are_mended(sandbox: Sandbox, assign: Any, work: Path) -> None:
    text = (
        '{"transcript": "half \\ud800 and \\u0000", "model": "m\\ud800", "tool_calls": {"\\udfff": 2}, "cost_usd": 0.5}'
    )
    (work / "said.json").write_text(text)

    execution = CommandRunner(sandbox).run(assign(command=("/bin/bash", "-c", 'cat "$0"', str(work / "said.json"))))

    assert "half \ufffd and \ufffd" in execution.transcript
    assert (execution.model, execution.metrics.tool_calls, execution.cost_usd) == ("m\ufffd", {"\ufffd": 2}, 0.5)


USED = '{"usage": {"input_tokens": 7, "output_tokens": 3}, "tool_calls": {"Read": 2}, "simulated": true}'


@pytest.mark.parametrize(("ending", "outcome"), [("exit 3", Outcome.EXECUTOR_ERROR), ("sleep 60", Outcome.TIMEOUT)])
def test_a_failed_command_keeps_what_it_told_of_its_work(
    sandbox: Sandbox, assign: Any, ending: str, outcome: Outcome
) -> None:
    command = ("bash", "-c", f"echo '{USED}' > $ASSAY_RESULT_FILE; echo working; {ending}")

    with pytest.raises(StageFailed) as raised:
        CommandRunner(sandbox).run(assign(model=None, command=command, timeout_seconds=2.0))

    files = raised.value.files
    metrics, timing, about = (json.loads(files[f"{name}.json"]) for name in ("metrics", "timing", "execution"))
    assert raised.value.outcome is outcome
    assert b"working" in files["transcript.md"]
    assert b"\n\n## Model\n\nSimulated: " in files["transcript.md"]
    assert (metrics["tool_calls"], metrics["simulated"]) == ({"Read": 2}, True)
    assert (timing["total_tokens"], timing["simulated"]) == (10, True)
    assert (about["runner"], about["usage"]["input_tokens"], about["simulated"]) == ("command", 7, True)
    assert raised.value.facts["tokens"] == 10


def test_half_a_character_in_prompt_and_answer_does_no_harm(sandbox: Sandbox, assign: Any) -> None:
    command = ("bash", "-c", """cat $ASSAY_PROMPT_FILE; echo '{"transcript": "half \\ud83d"}' > $ASSAY_RESULT_FILE""")

    execution = CommandRunner(sandbox).run(assign("a task \ud83d", model=None, command=command))

    assert execution.transcript.encode().decode() == "## Eval Prompt\n\na task \ufffd\n\n## Execution\n\nhalf \ufffd\n"
