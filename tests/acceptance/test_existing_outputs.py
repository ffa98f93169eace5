"""`assay grade`, `import` and `regrade` as a person uses them: the real program, the real SDK, the simulator."""

import contextlib
import json
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.api import Served, make_parts
from support.workspaces import SKILL_CREATOR_SUITE, flat_workspace, numbered_workspace, put

import simulator
from cli.client import Client
from workers.embedded import Embedded

JUDGE = "simulated-judge"
STATEMENTS = {1: ["The answer names the case", "The answer is short"], 2: ["The answer is polite"]}


@pytest.fixture
def model() -> Iterator[simulator.Simulator]:
    with simulator.start() as running:
        yield running


def assay(folder: Path, model: simulator.Simulator | None, *words: str) -> subprocess.CompletedProcess[str]:
    reach = {"ANTHROPIC_BASE_URL": model.url, "ANTHROPIC_API_KEY": "test-key"} if model else {}
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "ASSAY_SANDBOX": "none", **reach}
    command = [sys.executable, "-m", "cli", *words, "--data", str(folder / "data")]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)


def final(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.stdout, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def benchmark(said: dict[str, Any]) -> dict[str, Any]:
    return dict(json.loads(Path(said["paths"]["benchmark.json"]).read_text()))


def suite(statements: dict[int, list[str]]) -> dict[str, Any]:
    check = {"id": "S1", "type": "file_exists", "description": "an answer", "pattern": "answer.txt", "critical": True}
    evals = [
        {"id": number, "prompt": f"case {number}", "structural_expectations": [check], "expectations": texts}
        for number, texts in statements.items()
    ]
    return {"skill_name": "tiny", "evals": evals}


def executed(folder: Path, model: simulator.Simulator) -> dict[str, Any]:
    """A judged batch of two cases, two arms, two runs; half of the cases' runs also leave nothing in the control."""
    put(folder / "skill" / "SKILL.md", "---\nname: tiny\ndescription: for tests\n---\nWrite answer.txt.\n")
    put(folder / "skill" / "evals" / "evals.json", suite(STATEMENTS))
    put(folder / "agent.sh", 'echo "$ASSAY_CASE $ASSAY_CONFIGURATION $ASSAY_RUN" > answer.txt\n')
    command = f"/bin/bash {folder / 'agent.sh'}"
    words = ["--command", command, "--judge-model", JUDGE, "--runs", "2", "--json"]
    return final(assay(folder, model, "run", str(folder / "skill"), *words))


@pytest.mark.parametrize(("make", "runs"), [(flat_workspace, 4), (numbered_workspace, 8)])
def test_a_workspace_of_another_tool_is_checked_and_judged_and_never_executed(
    make: Any, runs: int, tmp_path: Path, model: simulator.Simulator
) -> None:
    root = make(tmp_path / "notes-workspace")

    done = assay(tmp_path, model, "grade", str(root), "--model", "simulated", "--json", "--fail-under", "0")

    said = final(done)
    assert (done.returncode, said["outcomes"]) == (0, {"scored": runs}), done.stderr
    assert said["gates"] == {"--fail-under 0": "passed"}
    found = benchmark(said)
    assert found["metadata"]["skill_name"] == "notes"
    assert found["metadata"]["provenance"]["runner"] == "given"
    assert found["metadata"]["provenance"]["judge_model"] == JUDGE
    assert list(found["run_summary"]) == ["with_skill", "without_skill", "delta"]
    assert found["run_summary"]["with_skill"]["tokens"]["mean"] == 1200
    kinds = model.stats()["by_kind"]
    assert set(kinds) == {"judge"} and kinds["judge"] >= runs


def test_grading_needs_no_gateway_when_the_model_is_simulated(tmp_path: Path) -> None:
    root = flat_workspace(tmp_path / "notes-workspace")
    summary, junit = tmp_path / "summary.md", tmp_path / "junit.xml"

    done = assay(
        tmp_path, None, "grade", str(root), "--model", "simulated", "--summary", str(summary), "--junit", str(junit)
    )

    assert done.returncode == 0, done.stderr
    assert "came from the simulator" in done.stdout and summary.stat().st_size and junit.stat().st_size


@pytest.mark.parametrize("command", ["grade", "import"])
def test_a_folder_without_runs_is_one_sentence_and_exit_code_3(command: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    done = assay(tmp_path, None, command, str(tmp_path / "empty"))

    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("assay: no runs in") and "Traceback" not in done.stderr


def test_an_unmatched_case_is_one_sentence_and_exit_code_3(tmp_path: Path) -> None:
    root = flat_workspace(tmp_path / "w")
    other = put(tmp_path / "other.json", {**SKILL_CREATOR_SUITE, "evals": [{"id": 9, "prompt": "p"}]})

    done = assay(tmp_path, None, "grade", str(root), "--evals", str(other))

    assert (done.returncode, "no case of the suite belongs to eval-1, eval-2" in done.stderr) == (3, True)


def test_an_export_that_is_imported_and_exported_again_keeps_its_figures(
    tmp_path: Path, model: simulator.Simulator
) -> None:
    put(tmp_path / "skill" / "SKILL.md", "---\nname: tiny\ndescription: for tests\n---\nWrite answer.txt.\n")
    whole = suite(STATEMENTS)
    dimension = {"id": "Q1", "name": "clarity", "description": "clear", "weight": 2, "scoring": {"1": "no", "5": "yes"}}
    whole["evals"][0]["quality_rubric"] = {"dimensions": [dimension]}
    put(tmp_path / "skill" / "evals" / "evals.json", whole)
    # One arm of one case is gated, one run breaks: neither may change on the way.
    script = '[ "$ASSAY_CASE $ASSAY_CONFIGURATION" = "1 without_skill" ] && exit 0\n'
    script += '[ "$ASSAY_CASE $ASSAY_CONFIGURATION $ASSAY_RUN" = "2 with_skill 2" ] && exit 3\n'
    put(tmp_path / "agent.sh", script + "mkdir -p deep; echo x > deep/file.txt; echo hi > answer.txt\n")
    command = f"/bin/bash {tmp_path / 'agent.sh'}"
    words = ["--command", command, "--judge-model", JUDGE, "--runs", "2", "--json"]
    first = final(assay(tmp_path, model, "run", str(tmp_path / "skill"), *words))
    one = unpacked(tmp_path, first["batch_id"], "one")

    second = final(assay(tmp_path, None, "import", str(one), "--json"))
    two = unpacked(tmp_path, second["batch_id"], "two")

    assert first["outcomes"] == second["outcomes"] == {"scored": 5, "gated": 2, "executor_error": 1}
    old, new = benchmark(first), benchmark(second)
    for part in ("run_summary", "statistics", "coverage", "items", "notes"):
        assert new[part] == old[part], part
    for part in ("runs", "uncounted_runs"):
        assert [without_number(run) for run in new[part]] == [without_number(run) for run in old[part]]
    assert new["metadata"]["provenance"]["skill_digest"] == old["metadata"]["provenance"]["skill_digest"]
    assert new["metadata"]["provenance"]["judge_model"] == JUDGE
    for path in sorted(one.rglob("*.json")):
        twin = two / "iteration-2" / path.relative_to(one / "iteration-1")
        if path.name not in ("benchmark.json", "eval_feedback_aggregate.json"):
            assert json.loads(twin.read_text()) == json.loads(path.read_text()), path
    listed = assay(tmp_path, None, "status").stdout
    assert first["batch_id"] in listed and second["batch_id"] in listed
    report = assay(tmp_path, None, "report", second["batch_id"], "-o", str(tmp_path / "report.html"))
    assert report.returncode == 0 and (tmp_path / "report.html").stat().st_size > 1_000


def without_number(run: dict[str, Any]) -> dict[str, Any]:
    """A run of a benchmark but for the number of its row."""
    return {name: value for name, value in run.items() if name != "paths"}


def unpacked(folder: Path, batch: str, name: str) -> Path:
    done = assay(folder, None, "export", batch, "-o", str(folder / f"{name}.zip"))
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(folder / f"{name}.zip") as archive:
        archive.extractall(folder / name)
    return folder / name


def test_a_regrade_asks_nobody_again_when_nothing_changed(tmp_path: Path, model: simulator.Simulator) -> None:
    old = executed(tmp_path, model)
    before = model.stats()["answered"]

    done = assay(tmp_path, model, "regrade", old["batch_id"], "--json")

    new = final(done)
    assert before >= 8 and model.stats()["answered"] == before
    assert new["outcomes"] == old["outcomes"] == {"scored": 8} and new["batch_id"] != old["batch_id"]
    assert (new["regrade"]["compared_runs"], new["regrade"]["different_runs"]) == (8, 0)
    assert new["regrade"]["regrade_of"] == old["batch_id"]
    provenance = benchmark(new)["metadata"]["provenance"]
    assert (provenance["runner"], provenance["regrade_of"]) == ("given", old["batch_id"])
    assert benchmark(new)["run_summary"] == benchmark(old)["run_summary"]


def test_only_the_case_whose_statement_changed_is_judged_anew(tmp_path: Path, model: simulator.Simulator) -> None:
    old = executed(tmp_path, model)
    kept = Path(old["paths"]["benchmark.json"]).read_bytes()
    changed = put(tmp_path / "new.json", suite({**STATEMENTS, 2: ["The answer rhymes"], 3: ["Nobody answered this"]}))
    judged_before = model.stats()["answered"]

    done = assay(tmp_path, model, "regrade", old["batch_id"], "--evals", str(changed), "--json")

    new = final(done)
    asked = model.stats()["answered"] - judged_before
    assert 4 <= asked <= 8, "four runs of one case, and perhaps some of them twice to measure the judge"
    assert "case 3 is new: there are no runs of it to grade" in done.stderr
    assert new["outcomes"] == {"scored": 8} and new["regrade"]["different_runs"] == 4
    assert {run["case"] for run in new["regrade"]["runs"]} == {2}
    whats = {change["what"] for run in new["regrade"]["runs"] for change in run["changes"]}
    assert whats == {"The answer is polite", "The answer rhymes"}
    again = assay(tmp_path, None, "results", old["batch_id"], "-o", str(tmp_path / "old"))
    assert again.returncode == 0 and (tmp_path / "old" / "benchmark.json").read_bytes() == kept


def test_a_regrade_shows_old_beside_new_as_a_table(tmp_path: Path, model: simulator.Simulator) -> None:
    old = executed(tmp_path, model)
    changed = put(tmp_path / "new.json", suite({1: STATEMENTS[1], 2: ["The answer rhymes"]}))

    done = assay(tmp_path, model, "regrade", old["batch_id"], "--evals", str(changed))

    assert f"4 of 8 runs are decided differently than in batch {old['batch_id']}" in done.stdout, done.stderr
    assert "not asked ->" in done.stdout and "with_skill       pass_rate" in done.stdout


@pytest.mark.parametrize(
    ("evals", "words"),
    [({"skill_name": "x", "evals": [{"id": "1", "prompt": "p"}]}, "has no case of batch"), ("{", "cannot be run")],
)
def test_a_suite_that_does_not_fit_is_refused(
    evals: Any, words: str, tmp_path: Path, model: simulator.Simulator
) -> None:
    old = executed(tmp_path, model)

    done = assay(tmp_path, model, "regrade", old["batch_id"], "--evals", str(put(tmp_path / "new.json", evals)))

    assert (done.returncode, words in done.stderr) == (3, True), done.stderr


def test_a_server_regrades_and_the_client_shows_both(tmp_path: Path, model: simulator.Simulator) -> None:
    old = executed(tmp_path, model)
    changed = put(tmp_path / "new.json", suite({1: STATEMENTS[1], 2: ["The answer rhymes"]}))
    reach = {"anthropic_base_url": model.url, "anthropic_api_key": "test-key"}
    parts = make_parts(tmp_path, **{alias.upper(): value for alias, value in reach.items()})

    with contextlib.closing(parts), Served(parts) as served, Embedded(parts):
        words = ["regrade", old["batch_id"], "--evals", str(changed), "--server", served.url, "--json"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
        command = [sys.executable, "-m", "cli", *words]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
        new = final(done)
        with Client(served.url) as client:
            about = client.batch(new["batch_id"])

    assert (done.returncode, new["outcomes"]) == (0, {"scored": 8}), done.stderr
    assert new["regrade"]["different_runs"] == 4
    assert about["regrade_of"] == old["batch_id"]
