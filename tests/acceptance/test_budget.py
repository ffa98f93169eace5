"""A batch that runs out of money: the rest settles as over_budget, the batch aggregates, more money lets it go on."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import simulator
from service.bootstrap import Parts
from service.settings import Settings

ROOT = Path(__file__).parents[2]
MODELS = ["--model", "claude-sonnet-4-5", "--judge-model", "claude-opus-4-5"]  # both have a price


def assay(folder: Path, url: str, *words: str) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "test-key",
        "ASSAY_REJUDGE_SHARE": "0",
        "ASSAY_ANALYST": "false",
        # One after the other: so that what one call has reserved stands in nobody's way.
        "ASSAY_EXECUTOR_CONCURRENCY": "1",
        "ASSAY_JUDGE_CONCURRENCY": "1",
    }
    command = [sys.executable, "-m", "cli", *words, "--data", str(folder / "data")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=280)
    assert done.stdout, done.stderr[-2000:]
    return done.stdout


def run(folder: Path, url: str, *words: str) -> dict[str, Any]:
    example = str(ROOT / "examples" / "csv-summary")
    found: dict[str, Any] = json.loads(assay(folder, url, "run", example, "--json", *words).splitlines()[-1])
    return found


def test_a_batch_without_money_left_settles_the_rest_as_over_budget_and_aggregates(
    tmp_path: Path, bubblewrap: str
) -> None:
    tmp_path.chmod(0o755)
    with simulator.start() as model:
        said = run(tmp_path, model.url, *MODELS, "--set", "max_cost_usd=0.4")
        batch = said["batch_id"]
        parts = Parts(Settings(data=tmp_path / "data", database_url=None))
        spent, _ = parts.desk.spent(batch, "default")
        benchmark = json.loads(parts.desk.aggregate_file(batch, "default", "benchmark.json"))
        words = {one.error for one in parts.desk.runs(batch, "default") if one.outcome == "over_budget"}

        assert said["state"] == "finished"
        assert set(said["outcomes"]) == {"scored", "over_budget"}
        assert sum(said["outcomes"].values()) == 12
        assert 0 < spent <= 0.4
        assert all("raise the budget and retry" in (word or "") for word in words)
        assert json.dumps(benchmark).count("over_budget") > 0

        assay(tmp_path, model.url, "retry", batch, "--max-cost-usd", "40")
        again = run(tmp_path, model.url, *MODELS, "--resume")

    assert (again["batch_id"], again["outcomes"]) == (batch, {"scored": 12})
    parts.close()
