"""The analyst of a finished batch: two questions, asked once; what it fails at is said and fails nothing."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

import simulator
from service.bootstrap import Parts

from .conftest import GOOD, batch

GRADING = {
    "expectations": [{"text": "an answer", "passed": True, "evidence": "a.txt"}],
    "summary": {"passed": 1, "failed": 0, "total": 1, "pass_rate": 1.0},
    "eval_feedback": {"suggestions": [{"assertion": "S1", "reason": "an empty file would pass"}], "overall": "thin"},
}
FILES = {**GOOD, "grading.json": json.dumps(GRADING).encode()}


def benchmark(parts: Parts, batch_id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(parts.desk.aggregate_file(batch_id, "default", "benchmark.json"))
    return found


def analyst(found: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = found["metadata"]["provenance"]["analyst"]
    return told


def test_notes_and_actions_are_added_and_their_origin_is_said(parts: Parts, tmp_path: Path) -> None:
    batch_id = batch(parts, tmp_path, "Write.", FILES)

    found = benchmark(parts, batch_id)
    assert any(note.startswith("Simulated note: the mean pass rate of with_skill is 1.0") for note in found["notes"])
    assert found["metadata"]["analyzer_model"] == "simulated-judge"
    told = analyst(found)
    assert (told["notes"]["state"], told["feedback"]["state"], told["simulated"]) == ("answered", "answered", True)
    assert told["prompt_version"]
    feedback = json.loads(parts.desk.aggregate_file(batch_id, "default", "eval_feedback_aggregate.json"))
    assert feedback["suggestions"][0]["action"] == "Simulated action: answer this: an empty file would pass"


def test_an_aggregate_built_again_pays_nothing_and_a_report_says_the_same(
    parts: Parts, tmp_path: Path, model: simulator.Simulator
) -> None:
    batch_id = batch(parts, tmp_path, "Write.", FILES)
    assert model.stats()["answered"] == 2

    again = tmp_path / "again"
    again.mkdir()
    parts.aggregate(batch_id, again)
    page = io.BytesIO()
    parts.results.file(batch_id, "default", "report.html", page)

    assert model.stats()["answered"] == 2
    assert json.loads((again / "benchmark.json").read_text())["notes"] == benchmark(parts, batch_id)["notes"]
    assert b"Simulated note" in page.getvalue()


@pytest.mark.parametrize("settings", [{"analyst": False}, {"judge_model": None}])
def test_switched_off_or_without_a_judge_nothing_is_asked(
    parts: Parts, tmp_path: Path, model: simulator.Simulator, settings: dict[str, Any]
) -> None:
    batch_id = batch(parts, tmp_path, "Write.", FILES, **settings)

    assert model.stats()["answered"] == 0
    assert "analyst" not in benchmark(parts, batch_id)["metadata"]["provenance"]


def test_an_analyst_that_refuses_leaves_the_rules_notes(
    parts: Parts, tmp_path: Path, model: simulator.Simulator
) -> None:
    model.add_faults({"kind": "refusal"})
    batch_id = batch(parts, tmp_path, "Write.", FILES)

    found = benchmark(parts, batch_id)
    assert found["metadata"]["analyzer_model"] is None
    assert "declined" in analyst(found)["notes"]["state"]
    assert not any("Simulated" in note for note in found["notes"])


def test_what_cannot_be_paid_is_left_out(parts: Parts, tmp_path: Path, model: simulator.Simulator) -> None:
    batch_id = batch(parts, tmp_path, "Write.", FILES, max_tokens=10)

    assert "over budget" in analyst(benchmark(parts, batch_id))["notes"]["state"]
    assert model.stats()["answered"] == 0
