"""The runner `messages` against the simulator, with its tools in the real sandbox."""

import json
import os
from typing import Any

import pytest

from schemas.states import Outcome
from service.errors import StageFailed, Unavailable
from service.models import ModelClient, SpendLimit
from service.runners.messages import AgentLimits, MessagesRunner
from service.sandbox import Sandbox
from simulator import Simulator


def bodies(simulator: Simulator) -> list[dict[str, Any]]:
    return [json.loads(request["body"]) for request in simulator.requests() if request["path"] == "/v1/messages"]


def script(*turns: dict[str, Any], **match: Any) -> dict[str, Any]:
    return {"agent": [{"match": match, "turns": list(turns)}]}


def tool(name: str, **asked: Any) -> dict[str, Any]:
    return {"tools": [{"name": name, "input": asked}]}


def test_the_treatment_arm_discovers_reads_and_uses_the_skill(
    runner: MessagesRunner, simulator: Simulator, assign: Any
) -> None:
    assignment = assign(inputs=("changes.md",))

    execution = runner.run(assignment)

    assert (assignment.workspace / "NOTES.md").is_file()
    assert execution.skill_used is True
    assert execution.skill_files_read == ("SKILL.md",)
    assert execution.simulated
    assert execution.model == "simulated"
    assert execution.cost_usd == 0.0
    assert execution.sandbox_tier == "bwrap"
    assert execution.transcript.startswith("## Eval Prompt\n\nWrite release notes into NOTES.md")
    assert "Group changes under Added, Changed and Fixed" in execution.transcript
    assert execution.transcript.count("\n\n## Model\n\nSimulated: ") == 1
    first = bodies(simulator)[0]
    assert "- release-notes: Use when writing release notes. (file: /skill/release-notes/SKILL.md)" in str(
        first["system"]
    )
    assert "Group changes" not in json.dumps(first)


def test_the_control_arm_hears_nothing_of_the_skill(runner: MessagesRunner, simulator: Simulator, assign: Any) -> None:
    execution = runner.run(assign(skill=False))

    assert execution.skill_used is None
    assert execution.skill_files_read == ()
    said = json.dumps(bodies(simulator)).lower()
    assert "skill" not in said
    assert "release-notes" not in said


def test_neither_the_model_nor_the_transcript_ever_sees_the_canary(
    runner: MessagesRunner, simulator: Simulator, assign: Any
) -> None:
    assignment = assign()

    execution = runner.run(assignment)

    canary = assignment.canary
    assert canary in (assignment.skill.folder / "SKILL.md").read_text()
    assert canary not in json.dumps(bodies(simulator))
    assert canary not in execution.transcript
    assert execution.transcript_events is not None
    assert canary.encode() not in execution.transcript_events


def test_counts_tokens_and_steps_are_those_of_the_simulator(
    runner: MessagesRunner, simulator: Simulator, assign: Any
) -> None:
    turns = (
        {
            "text": "look",
            "tools": [{"name": "Glob", "input": {"pattern": "*"}}, {"name": "Bash", "input": {"command": "false"}}],
        },
        tool("Write", file_path="a.txt", content="one"),
        tool("Edit", file_path="a.txt", old_string="one", new_string="two"),
        tool("Grep", pattern="two"),
        tool("Nonsense", x=1),
        {"text": "done"},
    )
    simulator.configure(script=script(*turns))
    assignment = assign(skill=False)

    execution = runner.run(assignment)

    metrics = execution.metrics
    assert metrics.tool_calls == {"Read": 0, "Write": 1, "Edit": 1, "Bash": 1, "Glob": 1, "Grep": 1, "Nonsense": 1}
    assert (metrics.total_tool_calls, metrics.total_steps, metrics.errors_encountered) == (6, 6, 2)
    assert (assignment.workspace / "a.txt").read_text() == "two"
    counted = simulator.stats()["tokens"]
    assert execution.usage.input_tokens == counted["input"]
    assert execution.usage.output_tokens == counted["output"]
    assert execution.usage.cache_read_tokens == counted["cache_read"] > 0
    assert execution.usage.cache_write_tokens == counted["cache_write"] > 0
    assert execution.usage.total == sum(counted.values())


def test_bash_keeps_home_and_tmp_between_commands_and_leaves_only_outputs(
    runner: MessagesRunner, simulator: Simulator, assign: Any
) -> None:
    simulator.configure(
        script=script(
            tool("Bash", command="echo kept > /tmp/x; echo kept > ~/y; pwd"),
            tool("Bash", command="cat /tmp/x ~/y > both.txt"),
            {"text": "done"},
        )
    )
    assignment = assign()

    execution = runner.run(assignment)

    assert [path.name for path in assignment.workspace.iterdir()] == ["both.txt"]
    assert (assignment.workspace / "both.txt").read_text() == "kept\nkept\n"
    assert "/workspace" in execution.transcript


def test_notes_for_people_are_taken_out_of_the_outputs(
    runner: MessagesRunner, simulator: Simulator, assign: Any
) -> None:
    simulator.configure(
        script=script(tool("Write", file_path="user_notes.md", content="# Uncertainty\n"), {"text": "x"})
    )
    assignment = assign()

    execution = runner.run(assignment)

    assert execution.user_notes == "# Uncertainty\n"
    assert list(assignment.workspace.iterdir()) == []


def test_the_skill_folder_cannot_be_changed(runner: MessagesRunner, simulator: Simulator, assign: Any) -> None:
    simulator.configure(
        script=script(
            tool("Write", file_path="{skill}/SKILL.md", content="hacked"),
            tool("Bash", command="echo hacked >> {skill}/SKILL.md"),
            {"text": "done"},
        )
    )
    assignment = assign()

    execution = runner.run(assignment)

    assert execution.metrics.errors_encountered == 2
    assert "hacked" not in (assignment.skill.folder / "SKILL.md").read_text()


def test_names_and_words_that_are_no_unicode_do_not_stop_a_run(
    runner: MessagesRunner, simulator: Simulator, assign: Any
) -> None:
    turns = [tool("Glob", pattern="*"), tool("Bash", command="ls; echo \ud83d"), {"text": "half \ud83d"}]
    simulator.configure(script=script(*turns))
    assignment = assign("a task \ud83d")
    (assignment.workspace / os.fsdecode(b"a\xff.txt")).write_text("x")

    execution = runner.run(assignment)

    assert "a\ufffd.txt" in bodies(simulator)[-1]["messages"][2]["content"][0]["content"]
    assert execution.transcript.encode().endswith(b"## Final Result\n\nhalf \xef\xbf\xbd\n\n## Issues\n\nNone.\n")
    assert simulator.stats()["requests"] == 3


def test_a_failed_run_keeps_what_it_did_and_what_it_cost(
    runner: MessagesRunner, simulator: Simulator, assign: Any
) -> None:
    simulator.configure(script=script({"text": "look", **tool("Bash", command="false")}, {"text": "never heard"}))
    simulator.add_faults({"kind": "refusal", "skip": 1})

    failure = fails(runner, assign())

    metrics, timing, about = (json.loads(failure.files[f"{name}.json"]) for name in ("metrics", "timing", "execution"))
    assert (metrics["tool_calls"]["Bash"], metrics["total_steps"], metrics["errors_encountered"]) == (1, 2, 1)
    assert metrics["simulated"] is timing["simulated"] is about["simulated"] is failure.facts["simulated"] is True
    counted = simulator.stats()["tokens"]
    assert failure.facts["tokens"] == timing["total_tokens"] == sum(counted.values()) > 0
    assert about["usage"]["output_tokens"] == counted["output"]
    assert (about["runner"], about["stop_reason"], about["skill_digest"]) == ("messages", "refusal", "digest")


def test_a_stop_for_a_tool_that_names_none_ends_the_run(
    runner: MessagesRunner, simulator: Simulator, assign: Any
) -> None:
    simulator.configure(script=script({"text": "I will look.", "stop_reason": "tool_use"}))

    failure = fails(runner, assign())

    assert failure.outcome is Outcome.EXECUTOR_ERROR
    assert "named none" in str(failure)
    assert simulator.stats()["requests"] == 1


def test_a_paused_turn_and_a_cut_answer_go_on(runner: MessagesRunner, simulator: Simulator, assign: Any) -> None:
    simulator.add_faults({"kind": "pause_turn", "times": 2}, {"kind": "max_tokens", "times": 2})

    execution = runner.run(assign())

    assert execution.details["stop_reason"] == "end_turn"
    assert simulator.stats()["faults"] == {"pause_turn": 2, "max_tokens": 2}


def fails(runner: MessagesRunner, assignment: Any) -> StageFailed:
    with pytest.raises(StageFailed) as raised:
        runner.run(assignment)
    assert raised.value.files["transcript.md"].startswith(b"## Eval Prompt")
    assert raised.value.files["transcript.jsonl"]
    assert {"metrics.json", "timing.json", "execution.json"} <= set(raised.value.files)
    return raised.value


@pytest.mark.parametrize(
    ("fault", "outcome", "requests"),
    [
        ({"kind": "refusal"}, Outcome.REFUSED, 1),
        ({"kind": "context_exceeded"}, Outcome.EXECUTOR_ERROR, 1),
        ({"kind": "prompt_too_long"}, Outcome.EXECUTOR_ERROR, 1),
        ({"kind": "too_large"}, Outcome.EXECUTOR_ERROR, 1),
        ({"kind": "max_tokens"}, Outcome.EXECUTOR_ERROR, 4),
        ({"kind": "pause_turn"}, Outcome.EXECUTOR_ERROR, 25),
        ({"kind": "unauthorized"}, Outcome.INFRA_ERROR, 1),
        ({"kind": "refusal", "skip": 1}, Outcome.REFUSED, 2),
    ],
)
def test_a_fault_ends_the_run_in_its_outcome_with_the_transcript_kept(
    runner: MessagesRunner, simulator: Simulator, assign: Any, fault: Any, outcome: Outcome, requests: int
) -> None:
    simulator.add_faults(fault)

    failure = fails(runner, assign())

    assert failure.outcome is outcome
    assert simulator.stats()["requests"] == requests


@pytest.mark.parametrize("kind", ["overloaded", "server_error", "cut", "stream_error", "rate_limited"])
def test_a_fault_that_lasts_hands_the_run_back_within_the_bound(
    runner: MessagesRunner, simulator: Simulator, assign: Any, kind: str
) -> None:
    simulator.add_faults({"kind": kind, "retry_after": 0.01})

    with pytest.raises(Unavailable):
        runner.run(assign())

    assert simulator.stats()["requests"] == 2


def test_a_spend_limit_is_handed_up(runner: MessagesRunner, simulator: Simulator, assign: Any) -> None:
    simulator.add_faults({"kind": "spend_limit"})

    with pytest.raises(SpendLimit):
        runner.run(assign(team="blue"))

    assert simulator.stats()["requests"] == 1


def test_a_model_that_never_answers_is_a_timeout(runner: MessagesRunner, simulator: Simulator, assign: Any) -> None:
    simulator.add_faults({"kind": "hang"})

    assert fails(runner, assign(timeout_seconds=0.5)).outcome is Outcome.TIMEOUT


def test_a_command_that_never_ends_is_a_timeout(runner: MessagesRunner, simulator: Simulator, assign: Any) -> None:
    simulator.configure(script=script(tool("Bash", command="sleep 600"), {"text": "never"}))

    failure = fails(runner, assign(timeout_seconds=1.0))

    assert failure.outcome is Outcome.TIMEOUT
    assert b"sleep 600" in failure.files["transcript.md"]


def test_an_agent_that_never_stops_is_stopped_by_its_turns_and_tokens(
    models: ModelClient, sandbox: Sandbox, simulator: Simulator, assign: Any
) -> None:
    turn = tool("Glob", pattern="*")
    simulator.configure(script=script(*[turn] * 30))

    few_turns = fails(MessagesRunner(models, sandbox, AgentLimits(turns=3)), assign())
    few_tokens = fails(MessagesRunner(models, sandbox, AgentLimits(total_tokens=3_000)), assign())

    assert (few_turns.outcome, few_tokens.outcome) == (Outcome.EXECUTOR_ERROR, Outcome.EXECUTOR_ERROR)
    assert "3 turns" in str(few_turns)
    assert "3000 tokens" in str(few_tokens)


def test_a_cancelled_run_stops_at_the_next_step(runner: MessagesRunner, simulator: Simulator, assign: Any) -> None:
    answers = iter([False, False, True])

    failure = fails(runner, assign(is_cancelled=lambda: next(answers, True)))

    assert failure.outcome is Outcome.CANCELLED
    assert simulator.stats()["requests"] <= 1


def test_a_flood_of_output_is_shortened_for_the_model(
    models: ModelClient, sandbox: Sandbox, simulator: Simulator, assign: Any
) -> None:
    simulator.configure(script=script(tool("Bash", command="seq 1 200000"), {"text": "done"}))

    MessagesRunner(models, sandbox, AgentLimits(tool_output_chars=5_000)).run(assign())

    result = bodies(simulator)[-1]["messages"][-1]["content"][0]["content"]
    assert len(result) < 5_200
    assert "characters left out" in result


def test_a_control_arm_that_finds_the_canary_is_contaminated(
    runner: MessagesRunner, simulator: Simulator, assign: Any
) -> None:
    simulator.configure(script=script(tool("Bash", command="cat leaked.md"), {"text": "done"}))
    assignment = assign(skill=False)
    (assignment.workspace / "leaked.md").write_text(f"# Rules\n<!-- {assignment.other_canary} -->\n")

    failure = fails(runner, assignment)

    assert failure.outcome is Outcome.CONTAMINATED
    assert simulator.stats()["requests"] == 1


def test_the_stable_prefix_is_marked_for_the_cache(runner: MessagesRunner, simulator: Simulator, assign: Any) -> None:
    runner.run(assign())

    for body in bodies(simulator):
        assert body["system"][-1]["cache_control"] == {"type": "ephemeral"}
        marks = [b for m in body["messages"] for b in m["content"] if "cache_control" in b]
        assert marks == [body["messages"][-1]["content"][-1]]
