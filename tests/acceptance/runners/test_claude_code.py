"""The runner `claude_code`: the real bundled command line against the simulator, both arms."""

import importlib.util
import json
from typing import Any

import pytest

from schemas.states import Outcome
from service.errors import StageFailed, Unavailable
from service.models import ModelClient, SpendLimit
from service.runners.claude_code import ClaudeCodeRunner
from service.runners.port import Assignment
from service.sandbox import Sandbox
from simulator import Simulator

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("claude_agent_sdk") is None, reason="the extra claude-code is not installed"
)


@pytest.fixture
def runner(models: ModelClient, sandbox: Sandbox) -> ClaudeCodeRunner:
    return ClaudeCodeRunner(models, sandbox)


def bodies(simulator: Simulator) -> list[dict[str, Any]]:
    return [json.loads(request["body"]) for request in simulator.requests() if request["path"] == "/v1/messages"]


def test_the_treatment_arm_opens_the_skill_and_uses_it(
    runner: ClaudeCodeRunner, simulator: Simulator, assign: Any
) -> None:
    assignment = assign(inputs=("changes.md",))

    execution = runner.run(assignment)

    notes = (assignment.workspace / "NOTES.md").read_text()
    assert "Group changes under Added, Changed and Fixed" in notes
    assert execution.skill_used is True
    assert execution.skill_files_read == ("SKILL.md",)
    assert execution.simulated
    assert execution.transcript.startswith("## Eval Prompt\n\nWrite release notes into NOTES.md")
    assert execution.metrics.tool_calls is not None
    assert execution.metrics.tool_calls["Skill"] == 1
    assert execution.metrics.tool_calls["Write"] >= 1
    assert execution.usage.total == sum(simulator.stats()["tokens"].values())
    assert "- release-notes: Use when writing release notes." in json.dumps(bodies(simulator)[0])
    said = json.dumps(simulator.requests()) + execution.transcript + str(execution.transcript_events)
    assert assignment.canary not in said


def test_the_control_arm_has_no_trace_of_the_skill(runner: ClaudeCodeRunner, simulator: Simulator, assign: Any) -> None:
    assignment = assign(skill=False)

    execution = runner.run(assignment)

    assert (assignment.workspace / "NOTES.md").is_file()
    assert execution.skill_used is None
    assert "release-notes" not in json.dumps(bodies(simulator))
    assert "release-notes" not in json.dumps(execution.details)
    assert not (assignment.workspace.parent / "home" / ".claude" / "skills").exists()


def test_only_its_work_is_left_in_the_workspace(runner: ClaudeCodeRunner, assign: Any) -> None:
    assignment = assign()

    runner.run(assignment)

    assert {path.name for path in assignment.workspace.iterdir()} == {"NOTES.md"}


def test_the_program_never_holds_our_key_and_has_no_network(
    runner: ClaudeCodeRunner, simulator: Simulator, assign: Any
) -> None:
    port = simulator.url.rsplit(":", 1)[1]
    tries = [
        "env; cat /proc/*/environ | tr '\\0' '\\n'",
        f"(exec 3<>/dev/tcp/127.0.0.1/{port}) && echo REACHED",
        "cat ~/.claude.json ~/.claude/*.json; cat /assay/*",
    ]
    turns = [{"tools": [{"name": "Bash", "input": {"command": one, "description": "x"}}]} for one in tries]
    simulator.configure(script={"agent": [{"turns": [*turns, {"text": "done"}]}]})

    execution = runner.run(assign())

    said = execution.transcript + str(execution.transcript_events) + json.dumps(simulator.requests())
    assert "sk-the-real-key" not in said
    results = [json.loads(line).get("result", "") for line in (execution.transcript_events or b"").splitlines()]
    assert "REACHED" not in str(results)
    assert execution.metrics.tool_calls is not None
    assert execution.metrics.tool_calls["Bash"] == len(tries)


@pytest.mark.parametrize(
    ("fault", "outcome"),
    [
        ({"kind": "refusal"}, Outcome.REFUSED),
        ({"kind": "unauthorized"}, Outcome.INFRA_ERROR),
        ({"kind": "prompt_too_long"}, Outcome.EXECUTOR_ERROR),
        ({"kind": "max_tokens"}, Outcome.EXECUTOR_ERROR),
        ({"kind": "context_exceeded"}, Outcome.EXECUTOR_ERROR),
    ],
)
def test_a_fault_ends_the_run_in_its_outcome(
    runner: ClaudeCodeRunner, simulator: Simulator, assign: Any, fault: Any, outcome: Outcome
) -> None:
    simulator.add_faults(fault)

    with pytest.raises(StageFailed) as raised:
        runner.run(assign())

    assert raised.value.outcome is outcome
    assert raised.value.files["transcript.md"].startswith(b"## Eval Prompt")
    assert {"transcript.jsonl", "metrics.json", "timing.json", "execution.json"} <= set(raised.value.files)
    assert raised.value.facts["tokens"] == sum(simulator.stats()["tokens"].values())


@pytest.mark.parametrize(
    ("kind", "words"),
    [("max_tokens", "cut at its output limit"), ("context_exceeded", "no longer fits"), ("refusal", "declined")],
)
def test_the_last_stop_reason_decides_whatever_the_program_says(
    runner: ClaudeCodeRunner, simulator: Simulator, assign: Any, kind: str, words: str
) -> None:
    simulator.add_faults({"kind": kind})

    with pytest.raises(StageFailed, match=words):
        runner.run(assign())


@pytest.mark.parametrize("kind", ["overloaded", "rate_limited", "server_error", "cut", "malformed"])
def test_a_fault_that_lasts_hands_the_run_back_within_the_bound(
    runner: ClaudeCodeRunner, simulator: Simulator, assign: Any, kind: str
) -> None:
    simulator.add_faults({"kind": kind, "retry_after": 0.01, "body": kind == "malformed"})

    with pytest.raises(Unavailable):
        runner.run(assign())

    assert simulator.stats()["most_repeated"] <= 2


def test_a_spend_limit_is_handed_up(runner: ClaudeCodeRunner, simulator: Simulator, assign: Any) -> None:
    simulator.add_faults({"kind": "spend_limit"})

    with pytest.raises(SpendLimit):
        runner.run(assign())

    assert simulator.stats()["most_repeated"] == 1


def test_an_agent_that_hangs_is_a_timeout(runner: ClaudeCodeRunner, simulator: Simulator, assign: Any) -> None:
    simulator.add_faults({"kind": "hang"})

    with pytest.raises(StageFailed) as raised:
        runner.run(assign(timeout_seconds=4.0))

    assert raised.value.outcome is Outcome.TIMEOUT


def test_a_control_arm_that_meets_the_canary_is_contaminated(
    runner: ClaudeCodeRunner, simulator: Simulator, assign: Any
) -> None:
    assignment: Assignment = assign(skill=False)
    (assignment.workspace / "leaked.md").write_text(f"<!-- {assignment.other_canary} -->\n")
    read = {"tools": [{"name": "Read", "input": {"file_path": "leaked.md"}}]}
    simulator.configure(script={"agent": [{"turns": [read, {"text": "done"}]}]})

    with pytest.raises(StageFailed) as raised:
        runner.run(assignment)

    assert raised.value.outcome is Outcome.CONTAMINATED
