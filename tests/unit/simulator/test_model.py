"""What the simulated model says: by script, else by seeded rules."""

import json
from typing import Any

import pytest

from simulator.answers import Model
from simulator.conversation import Conversation
from simulator.faults import Match, read_fault
from simulator.script import read_script

TOOLS = [{"name": name, "input_schema": {"type": "object"}} for name in ("Read", "Write", "Bash")]
OFFER = "The following skills are available:\n\n- haiku: Writes haiku. (file: /skill/haiku/SKILL.md)\n"


def agent(prompt: str, *history: dict[str, Any], skill: bool = False, run: str = "") -> Conversation:
    messages = [{"role": "user", "content": prompt}, *history]
    system = OFFER if skill else "You work."
    return Conversation({"model": "m", "max_tokens": 9000, "tools": TOOLS, "system": system, "messages": messages}, run)


def judge(prompt: str, schema: dict[str, Any]) -> Conversation:
    output = {"format": {"type": "json_schema", "schema": schema}}
    messages = [{"role": "user", "content": prompt}]
    return Conversation({"model": "m", "max_tokens": 9000, "messages": messages, "output_config": output})


def verdicts(*ids: str) -> dict[str, Any]:
    properties = {"id": {"enum": list(ids), "type": "string"}, "passed": {"type": "boolean"}}
    item = {"type": "object", "properties": properties, "additionalProperties": False}
    listed = {"type": "array", "items": item}
    return {"type": "object", "properties": {"verdicts": listed}, "additionalProperties": False}


def model(script: dict[str, Any] | None = None, seed: int = 0) -> Model:
    return Model(read_script(script or {}), seed)


def test_an_agent_that_is_offered_a_skill_reads_it_first() -> None:
    answer = model().answer(agent("write a haiku into haiku.md", skill=True))

    assert answer.stop_reason == "tool_use"
    assert answer.content[-1]["name"] == "Read"
    assert answer.content[-1]["input"] == {"file_path": "/skill/haiku/SKILL.md"}


def test_an_agent_without_a_skill_writes_the_files_the_prompt_names() -> None:
    answer = model().answer(agent("write poems/haiku.md and notes.txt"))

    written = [block["input"]["file_path"] for block in answer.content if block["type"] == "tool_use"]
    assert written[:2] == ["poems/haiku.md", "notes.txt"]


def test_what_the_agent_read_shows_up_in_what_it_writes() -> None:
    said = {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Read", "input": {}}]}
    found = {"type": "tool_result", "tool_use_id": "t", "content": "- Count syllables five seven five"}
    history = (said, {"role": "user", "content": [found]})

    texts = [
        block["input"]["content"]
        for run in range(4)
        for block in model(seed=run).answer(agent("write haiku.md", *history, skill=True)).content
        if block["type"] == "tool_use" and block["input"]["file_path"] == "haiku.md"
    ]

    assert any("Count syllables five seven five" in text for text in texts)


def test_the_same_seed_says_the_same_and_another_run_may_differ() -> None:
    asked = [agent("write a.md", run=str(number)) for number in range(20)]

    once = [model(seed=3).answer(one).content for one in asked]
    again = [model(seed=3).answer(one).content for one in asked]

    assert once == again
    assert len({json.dumps([b.get("input") for b in content]) for content in once}) > 1


def test_a_script_decides_by_prompt_arm_and_turn() -> None:
    turns = [
        {"text": "first", "tools": [{"name": "Read", "input": {"file_path": "{skill}/SKILL.md"}}]},
        {"text": "end"},
    ]
    with_skill = {"match": {"prompt": "HAIKU", "arm": "with_skill"}, "turns": turns}
    without = {"match": {"prompt": "haiku", "arm": "without_skill"}, "turns": [{"text": "plain"}]}
    scripted = model({"agent": [with_skill, without]})

    first = scripted.answer(agent("a haiku please", skill=True))
    control = scripted.answer(agent("a haiku please"))

    assert first.content[1]["input"] == {"file_path": "/skill/haiku/SKILL.md"}
    assert [block.get("text") for block in control.content] == ["plain"]
    assert control.stop_reason == "end_turn"


def test_the_judge_answers_every_id_exactly_once_and_by_what_it_was_shown() -> None:
    shown = (
        "[E1] The haiku mentions autumn leaves\n[E2] A spreadsheet holds quarterly revenue\n\nhaiku autumn leaves fall"
    )

    answer = json.loads(model().answer(judge(shown, verdicts("E1", "E2"))).content[0]["text"])

    assert answer == {"verdicts": [{"id": "E1", "passed": True}, {"id": "E2", "passed": False}]}


def test_a_script_fixes_single_verdicts() -> None:
    scripted = model({"judge": [{"scores": {"spreadsheet": True, "haiku": False}}]})
    shown = (
        "[E1] The haiku mentions autumn leaves\n[E2] A spreadsheet holds quarterly revenue\n\nhaiku autumn leaves fall"
    )

    answer = json.loads(scripted.answer(judge(shown, verdicts("E1", "E2"))).content[0]["text"])

    assert [one["passed"] for one in answer["verdicts"]] == [False, True]


def test_an_answer_longer_than_allowed_stops_at_max_tokens() -> None:
    asked = Conversation({"model": "m", "max_tokens": 3, "messages": [{"role": "user", "content": "hi"}]})

    answer = model().answer(asked)

    assert answer.stop_reason == "max_tokens"
    assert answer.output_tokens == 3


@pytest.mark.parametrize(
    ("script", "complaint"),
    [
        ({"agnet": []}, "unknown key 'agnet'"),
        ({"faults": [{"kind": "explode"}]}, "fault kind 'explode' is unknown"),
        ({"agent": [{"match": {"promt": "x"}}]}, "promt"),
        ({"agent": [{"turns": [{"tools": [{"name": "Read"}]}]}]}, r"agent\[0\]: each tool needs a name and an input"),
    ],
)
def test_a_script_with_a_mistake_is_refused_with_its_place(script: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        read_script(script)


def test_a_fault_strikes_as_often_as_told_and_only_where_it_matches() -> None:
    fault = read_fault({"kind": "overloaded", "times": 2, "skip": 1, "match": {"prompt": "haiku"}})
    asked = [agent("a haiku"), agent("an ode"), agent("a haiku"), agent("a haiku"), agent("a haiku")]

    struck = [fault.strikes(one, number) for number, one in enumerate(asked)]

    assert struck == [False, False, True, True, False]


def test_a_rate_hits_about_that_share() -> None:
    fault = read_fault({"kind": "overloaded", "rate": 0.1})

    struck = sum(fault.strikes(agent("x"), number) for number in range(2000))

    assert 140 < struck < 260


def test_the_arm_is_read_from_what_is_offered() -> None:
    assert Match(arm="with_skill").fits(agent("x", skill=True))
    assert not Match(arm="with_skill").fits(agent("x"))
    assert not Match(arm="with_skill", skill="other").fits(agent("x", skill=True))
