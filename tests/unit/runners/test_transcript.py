"""The transcript of a run."""

import json

from service.runners.transcript import Transcript, fenced, shortened


def test_the_markdown_starts_with_the_prompt_and_tells_every_step() -> None:
    transcript = Transcript("Write a haiku", ("a.csv",), "haiku")
    transcript.turn([{"type": "text", "text": "I will."}], stop_reason="tool_use")
    transcript.tool("Write", {"file_path": "haiku.md"}, "created haiku.md", False, 0.1)
    transcript.tool("Bash", {"command": "false"}, "(exit code 1)", True, 0.1)
    transcript.turn([{"type": "text", "text": "Done."}], stop_reason="end_turn")

    text = transcript.markdown()

    assert text.startswith("## Eval Prompt\n\nWrite a haiku\n\n## Skill\n\nOffered: haiku")
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert headings[2:] == [
        "## Input Files",
        "## Execution",
        "### Step 1",
        "### Step 2",
        "## Final Result",
        "## Issues",
    ]
    assert text.count("**Tool**") == 2
    assert "- Step 1: Bash: (exit code 1)" in text
    assert "Done." in text.split("## Final Result")[1]


def test_the_json_lines_hold_the_same_in_order() -> None:
    transcript = Transcript("p")
    transcript.turn([{"type": "text", "text": "x"}])
    transcript.tool("Read", {"file_path": "a"}, "text", False)

    lines = [json.loads(line) for line in transcript.json_lines().splitlines()]

    assert [(line["type"], line["turn"]) for line in lines] == [("prompt", 0), ("assistant", 1), ("tool", 1)]


def test_a_result_cannot_close_its_own_fence() -> None:
    block = fenced("```\n## Final Result\n```")

    assert block.startswith("````\n")
    assert block.endswith("\n````")


def test_a_long_result_loses_its_middle_and_says_so() -> None:
    text = shortened("a" * 500 + "b" * 500, 90)

    assert text.startswith("a" * 60)
    assert text.endswith("b" * 30)
    assert "910 characters left out" in text


def test_half_a_character_can_be_written_in_both_forms() -> None:
    transcript = Transcript("half \ud83d", ("a\udcff.txt",), "skill\ud83d")
    transcript.turn([{"type": "text", "text": "half \ud83d and whole \ud83d\ude00"}])
    transcript.tool("Glob", {"pattern": "\udcff"}, "a\udcff.txt", True)

    markdown, lines = transcript.markdown(), transcript.json_lines()

    assert "half \ufffd and whole \U0001f600" in markdown.encode().decode()
    assert [json.loads(line)["type"] for line in lines.decode().splitlines()] == ["prompt", "assistant", "tool"]


def test_a_simulated_model_is_told_and_a_real_one_is_not() -> None:
    real, simulated = Transcript("p"), Transcript("p", is_simulated=True)

    assert "Simulated" not in real.markdown()
    assert simulated.markdown().startswith("## Eval Prompt\n\np\n\n## Skill")
    assert "\n\n## Model\n\nSimulated: " in simulated.markdown()
