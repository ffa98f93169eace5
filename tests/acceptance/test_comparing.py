"""Two versions of a skill, two batches, a comparison and a history: by the command line, and by the API."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from pydantic import SecretStr
from support.api import Served

import simulator
from cli.client import Client
from service.bootstrap import Parts
from service.settings import Settings
from workers.embedded import Embedded

ROOT = Path(__file__).parents[2]


def assay(folder: Path, *words: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    command = [sys.executable, "-m", "cli", *words, "--data", str(folder / "data")]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr[-2000:] + done.stdout[-500:]
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, bubblewrap: str) -> Path:
    """A data folder with a batch of a crippled first version and one of the example as it is."""
    found = tmp_path_factory.mktemp("comparing")
    found.chmod(0o755)
    skill = found / "csv-summary"
    shutil.copytree(ROOT / "examples" / "csv-summary", skill)
    whole = (skill / "SKILL.md").read_text()
    words = ("run", str(skill), "--model", "simulated", "--runs", "1", "--no-baseline", "--json")
    (skill / "SKILL.md").write_text(whole.partition("2. Check")[0])
    assay(found, *words)
    (skill / "SKILL.md").write_text(whole)
    assay(found, *words)
    return found


def schema(kind: str) -> Any:
    return json.loads((ROOT / "schemas" / "json" / "skill_creator" / f"{kind}.schema.json").read_text())


def test_two_versions_are_compared_explained_and_entered_into_the_history(folder: Path) -> None:
    before = json.loads(assay(folder, "history", "csv-summary"))
    assert "grading_result" not in before["iterations"][1]

    said = assay(folder, "compare", "--skill", "csv-summary", "v0", "v1", "-o", "out")

    assert "csv-summary v1" in said and "the judge was the simulator" in said
    out = folder / "out"
    for number in (1, 2):
        jsonschema.validate(json.loads((out / f"comparison-{number}.json").read_text()), schema("comparison"))
    jsonschema.validate(json.loads((out / "analysis.json").read_text()), schema("analysis"))
    summary = json.loads((out / "summary.json").read_text())
    after = json.loads(assay(folder, "history", "csv-summary"))
    jsonschema.validate(after, schema("history"))
    assert after["iterations"][1]["grading_result"] == summary["result"]
    assert after["iterations"][0]["grading_result"] == "baseline"
    cases = json.loads(assay(folder, "history", "csv-summary", "--dialect", "cases"))
    assert [one["version"] for one in cases["versions"]] == [0, 1]


def test_the_same_over_http_is_done_by_a_judge_worker(folder: Path) -> None:
    with simulator.start() as model:
        reached: dict[str, Any] = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": SecretStr("test-key")}
        parts = Parts(Settings(data=folder / "data", log_level="error", **reached))
        with Embedded(parts), Served(parts) as served, Client(served.url, served.token("default")) as client:
            accepted = client.compare({"skill": "csv-summary", "champion": "v0", "challenger": "v1"})
            ended = wait(client, accepted["id"])

            assert (ended["state"], ended["error"]) == ("finished", None)
            summary = json.loads(client.comparison_file(ended["id"], "summary.json"))
            assert summary["pairs"]["compared"] == 2
            assert client.history("csv-summary", "skill_creator")["iterations"][1]["grading_result"] == ended["result"]
        parts.close()


def wait(client: Client, comparison_id: str) -> dict[str, Any]:
    deadline = time.monotonic() + 120
    while (found := client.comparison(comparison_id))["state"] in ("accepted", "running"):
        assert time.monotonic() < deadline, found
        time.sleep(0.2)
    return found
