"""A whole batch on one machine: the runner `messages` against the simulator, both arms, and faults that pass."""

import functools
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cli.progress import watch
from schemas.states import Outcome
from service.bootstrap import Parts
from service.models import ClientSettings, ModelClient
from service.models.attempts import Patience
from service.runners.messages import MessagesRunner
from service.runners.port import Runner
from service.settings import embedded_settings
from service.storage.rows import RunRow
from service.storage.schema import migrate
from service.submitting import Submission
from simulator import Simulator
from workers.embedded import Embedded

SCHEMAS = Path(__file__).parents[3] / "schemas" / "json" / "skill_creator"
EXPECTATION = "The output includes the word Zanzibar"
SUITE = {
    "skill_name": "example-skill",
    "evals": [
        {
            "id": 1,
            "prompt": "Summarize evals/files/sample1.csv into summary.md",
            "expected_output": "A summary that nobody but the judge may know about",
            "files": ["evals/files/sample1.csv"],
            "expectations": [EXPECTATION, "The skill used script Y"],
        }
    ],
}
SKILL = """---
name: example-skill
description: Summarizes tables.
---
# Summaries

- Say the number of rows
- Say the sum
"""


class WithMessages(Parts):
    """The parts of a process, with the model where the test says it is."""

    def __init__(self, data: Path, url: str) -> None:
        super().__init__(embedded_settings(data=data, max_attempts=2, executor_model="simulated", runner="messages"))
        patience = Patience(max_retries=1, retry_after_cap_seconds=0.5, first_pause_seconds=0.02)
        self.client = ModelClient(ClientSettings("sk-real", url, 16, patience))

    def runner(self, name: str) -> Runner:
        return MessagesRunner(self.client, self.sandbox) if name == "messages" else super().runner(name)


class Nobody:
    """Watches without a screen."""

    def __getattr__(self, _name: str) -> Callable[..., None]:
        return lambda *_args, **_kwargs: None


Run = Callable[..., tuple[WithMessages, list[RunRow]]]


@pytest.fixture
def run(work: Path, simulator: Simulator, bubblewrap: str) -> Iterator[Run]:
    assert bubblewrap
    opened: list[WithMessages] = []

    def whole_batch(
        cases: list[dict[str, Any]] | None = None, runs: int = 3, **settings: Any
    ) -> tuple[WithMessages, list[RunRow]]:
        skill = work / "example-skill"
        (skill / "evals" / "files").mkdir(parents=True)
        (skill / "SKILL.md").write_text(SKILL)
        (skill / "evals" / "evals.json").write_text(json.dumps({**SUITE, "evals": cases or SUITE["evals"]}))
        (skill / "evals" / "files" / "sample1.csv").write_text("city,people\nRome,3\nOslo,1\n")
        parts = WithMessages(work / "data", simulator.url)
        opened.append(parts)
        migrate(parts.store.engine)
        accepted = parts.desk.submit(Submission(skill, settings={"runs_per_eval": runs, **settings}))
        with Embedded(parts):
            watch(functools.partial(parts.desk.status, accepted.batch_id, "default"), Nobody())  # type: ignore[arg-type]
        return parts, list(parts.desk.runs(accepted.batch_id, "default"))

    yield whole_batch
    for parts in opened:
        parts.client.close()
        parts.store.engine.dispose()


def files_of(parts: WithMessages, row: RunRow) -> dict[str, bytes]:
    return {name: parts.artifacts.get(blob.sha256) for name, blob in parts.store.runs.files(row.id).items()}


def test_both_arms_three_runs_leave_complete_and_valid_artifacts(run: Run, simulator: Simulator) -> None:
    parts, rows = run()

    assert len(rows) == 6
    for row in rows:
        files = files_of(parts, row)
        assert {"transcript.md", "transcript.jsonl", "metrics.json", "timing.json", "execution.json"} <= set(files)
        assert any(name.startswith("outputs/") for name in files)
        for name in ("metrics", "timing"):
            jsonschema.validate(
                json.loads(files[f"{name}.json"]), json.loads((SCHEMAS / f"{name}.schema.json").read_text())
            )
        metrics = json.loads(files["metrics.json"])
        assert set(metrics["tool_calls"]) == {"Read", "Write", "Edit", "Bash", "Glob", "Grep"}
        assert metrics["files_created"]
        assert metrics["output_chars"] > 0
        assert metrics["transcript_chars"] > 0
        facts = json.loads(files["execution.json"])
        assert facts["simulated"] is True
        assert facts["skill_used"] is (True if row.configuration == "with_skill" else None)
        assert json.loads(files["timing.json"])["total_tokens"] == sum(facts["usage"].values()) > 0
    said = json.dumps([request["body"] for request in simulator.requests()])
    assert "Zanzibar" not in said
    assert "nobody but the judge" not in said
    assert "expectation" not in said.lower()


def test_faults_that_pass_lose_nothing(run: Run, simulator: Simulator) -> None:
    kinds = ("overloaded", "server_error", "cut", "rate_limited", "stream_error", "pause_turn", "max_tokens")
    simulator.add_faults(*({"kind": kind, "times": 1, "skip": 1, "retry_after": 0.01} for kind in kinds))

    _, rows = run(runs=3)

    assert {row.outcome for row in rows} <= {Outcome.SCORED, Outcome.UNGRADED, Outcome.JUDGE_ERROR}
    assert sum(simulator.stats()["faults"].values()) == len(kinds)
