"""The examples, whole: agent, checks, judge and aggregate with the real SDK against the simulator."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from service.bootstrap import Parts
from service.settings import Settings

ROOT = Path(__file__).parents[2]
SCHEMAS = ROOT / "schemas" / "json"
# What each artifact of a run must look like, and in which dialect a suite's grading is written.
EXAMPLES = {"changelog-entry": "skill_evaluator", "csv-summary": "skill_creator", "skill-review": "cases"}


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory, bubblewrap: str) -> dict[str, tuple[Parts, dict[str, Any]]]:
    """Every example run once, three runs per arm."""
    return {name: run(tmp_path_factory.mktemp(name), name) for name in EXAMPLES}


def run(folder: Path, name: str) -> tuple[Parts, dict[str, Any]]:
    folder.chmod(0o755)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    command = [sys.executable, "-m", "cli", "run", str(ROOT / "examples" / name), "--model", "simulated", "--json"]
    words = ["--data", str(folder / "data")]
    done = subprocess.run([*command, *words], env=environment, capture_output=True, text=True, timeout=280)
    assert done.stdout, done.stderr[-2000:]
    return Parts(Settings(data=folder / "data", database_url=None)), json.loads(done.stdout.splitlines()[-1])


def artifacts(parts: Parts, batch_id: str) -> list[tuple[Any, dict[str, bytes]]]:
    found = []
    for one in parts.desk.runs(batch_id, "default"):
        files = parts.store.runs.files(one.id)
        found.append((one, {name: parts.artifacts.get(blob.sha256) for name, blob in files.items()}))
    return found


def validate(data: bytes, dialect: str, kind: str) -> None:
    schema = json.loads((SCHEMAS / dialect / f"{kind}.schema.json").read_text())
    jsonschema.validate(json.loads(data), schema)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_run_of_an_example_ends_with_a_score(name: str, ran: dict[str, tuple[Parts, dict[str, Any]]]) -> None:
    _, said = ran[name]

    assert said["state"] == "finished"
    assert set(said["outcomes"]) <= {"scored", "gated"}
    assert sum(said["outcomes"].values()) == 12


@pytest.mark.parametrize(("name", "dialect"), EXAMPLES.items())
def test_every_artifact_is_valid_and_labelled(
    name: str, dialect: str, ran: dict[str, tuple[Parts, dict[str, Any]]]
) -> None:
    parts, said = ran[name]

    for one, files in artifacts(parts, said["batch_id"]):
        assert files["transcript.md"].startswith(b"## Eval Prompt\n")
        validate(files["metrics.json"], "skill_creator", "metrics")
        validate(files["timing.json"], "skill_creator", "timing")
        # Only the skill-evaluator dialect has structural expectations; without any there is nothing to check.
        assert ("structural.json" in files) is (dialect == "skill_evaluator")
        if "structural.json" in files:
            validate(files["structural.json"], "skill_evaluator", "structural")
        assert json.loads(files["execution.json"])["simulated"] is True
        if one.outcome == "scored":
            validate(files["grading.json"], dialect, "grading")
            assert json.loads(files["grading.json"])["simulated"] is True


@pytest.mark.parametrize("name", EXAMPLES)
def test_arms_are_what_they_claim(name: str, ran: dict[str, tuple[Parts, dict[str, Any]]]) -> None:
    parts, said = ran[name]

    used = Counter((one.configuration, one.facts["skill_used"]) for one, _ in artifacts(parts, said["batch_id"]))

    assert used[("with_skill", True)] == 6
    assert used[("without_skill", True)] == 0


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_benchmark_says_that_it_is_simulated_and_what_it_rests_on(
    name: str, ran: dict[str, tuple[Parts, dict[str, Any]]]
) -> None:
    _, said = ran[name]

    benchmark = json.loads(Path(said["paths"]["benchmark.json"]).read_text())

    assert benchmark["metadata"]["provenance"]["simulated"] is True
    assert benchmark["metadata"]["provenance"]["suite_dialect"] == EXAMPLES[name]
    assert benchmark["coverage"]["planned"] == 12
    assert list(benchmark["run_summary"]) == ["with_skill", "without_skill", "delta"]


def test_every_call_is_in_the_ledger(ran: dict[str, tuple[Parts, dict[str, Any]]]) -> None:
    from sqlalchemy import func, select

    from service.storage.tables import model_calls

    parts, said = ran["csv-summary"]
    query = select(model_calls.c.purpose, func.count(), func.min(model_calls.c.simulated)).group_by(
        model_calls.c.purpose
    )

    with parts.store.engine.begin() as connection:
        rows = {row[0]: (row[1], row[2]) for row in connection.execute(query)}

    assert rows["execute"][0] >= 12 and rows["judge"][0] >= said["outcomes"]["scored"]
    assert rows["execute"][1] == rows["judge"][1] == 1
