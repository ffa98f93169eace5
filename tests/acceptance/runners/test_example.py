"""The skill-creator example as a whole batch, both arms: every artifact is there and valid against our schemas."""

import importlib.util
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.whole_batch import WithModels

from schemas.states import Outcome
from service.storage.rows import RunRow
from simulator import Simulator

ROOT = Path(__file__).parents[3]
SCHEMAS = ROOT / "schemas" / "json" / "skill_creator"
EVERY_RUN = {"transcript.md", "transcript.jsonl", "metrics.json", "timing.json", "execution.json", "grading.json"}
MODELS = {"executor_model": "simulated", "judge_model": "simulated-judge"}


@pytest.fixture
def parts(work: Path, simulator: Simulator, bubblewrap: str) -> Iterator[WithModels]:
    assert bubblewrap
    opened = WithModels(work / "data", simulator.url, rejudge_share=0.0, execute_timeout_seconds=180.0)
    yield opened
    opened.close()


@pytest.fixture
def example(work: Path) -> Path:
    copied = work / "csv-summary"
    shutil.copytree(ROOT / "examples" / "csv-summary", copied)
    return copied


def keep_cases(skill: Path, count: int) -> None:
    path = skill / "evals" / "evals.json"
    suite = json.loads(path.read_text())
    path.write_text(json.dumps({**suite, "evals": suite["evals"][:count]}))


def valid(document: bytes, name: str) -> dict[str, Any]:
    read: dict[str, Any] = json.loads(document)
    jsonschema.validate(read, json.loads((SCHEMAS / f"{name}.schema.json").read_text()))
    return read


def check_run(parts: WithModels, row: RunRow, runner: str) -> None:
    files = {name: parts.artifacts.get(blob.sha256) for name, blob in parts.store.runs.files(row.id).items()}
    assert (row.outcome, row.error) == (Outcome.SCORED, None)
    assert set(files) >= EVERY_RUN
    outputs = sorted(name.removeprefix("outputs/") for name in files if name.startswith("outputs/"))
    assert outputs
    assert valid(files["metrics.json"], "metrics")["files_created"] == outputs
    timing, grading = valid(files["timing.json"], "timing"), valid(files["grading.json"], "grading")
    assert timing["total_tokens"] > 0
    assert grading["summary"]["total"] == len(grading["expectations"]) > 0
    assert all(one["evidence"] for one in grading["expectations"])
    facts = json.loads(files["execution.json"])
    has_skill = row.configuration == "with_skill"
    assert (facts["runner"], facts["simulated"]) == (runner, True)
    assert facts["skill_used"] is (True if has_skill else None)
    assert (facts["skill_digest"] is not None) is has_skill
    assert b"assay-canary-" not in b"".join(files.values())


def check_batch(parts: WithModels, batch_id: str, runner: str, planned: int) -> None:
    rows = list(parts.desk.runs(batch_id, "default"))
    assert len(rows) == planned
    for row in rows:
        check_run(parts, row, runner)
    benchmark = valid(parts.desk.aggregate_file(batch_id, "default", "benchmark.json"), "benchmark")
    assert len(benchmark["runs"]) == planned
    assert list(benchmark["run_summary"]) == ["with_skill", "without_skill", "delta"]


def test_the_messages_runner_three_runs_of_both_arms(parts: WithModels, example: Path) -> None:
    cases = len(json.loads((example / "evals" / "evals.json").read_text())["evals"])

    batch_id = parts.run_batch(example, runner="messages", runs_per_eval=3, **MODELS)

    check_batch(parts, batch_id, "messages", planned=3 * 2 * cases)


@pytest.mark.skipif(
    importlib.util.find_spec("claude_agent_sdk") is None, reason="the extra claude-code is not installed"
)
def test_the_claude_code_runner_both_arms_through_the_real_command_line(parts: WithModels, example: Path) -> None:
    keep_cases(example, 1)

    batch_id = parts.run_batch(example, runner="claude_code", runs_per_eval=1, **MODELS)

    check_batch(parts, batch_id, "claude_code", planned=2)
