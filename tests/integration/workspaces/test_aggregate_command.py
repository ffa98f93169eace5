import json
import subprocess
import sys
from pathlib import Path

import pytest


def assay(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    code = "import typer; from cli.aggregate import aggregate; from service.errors import AssayError\n"
    code += "app = typer.Typer(pretty_exceptions_enable=False); app.command()(aggregate)\n"
    code += "try: app()\nexcept AssayError as e: raise SystemExit(f'assay: {e}')"
    return subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=60
    )


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """Four cases on which the old skill is better than the one with_skill."""
    for case in range(4):
        for arm, passed in (("with_skill", 3 + case % 2), ("old_skill", 1)):
            folder = tmp_path / "pdf-workspace" / "iteration-1" / f"eval-{case}" / arm / "run-1"
            folder.mkdir(parents=True)
            expectations = [{"text": f"s{i}", "passed": i < passed, "evidence": ""} for i in range(5)]
            (folder / "grading.json").write_text(json.dumps({"expectations": expectations}))
    return tmp_path / "pdf-workspace"


def test_a_folder_is_aggregated_into_three_files_beside_its_cases(workspace: Path) -> None:
    done = assay(workspace)
    assert done.returncode == 0, done.stderr
    assert "with_skill helps: pass rate +0.50" in done.stdout
    root = workspace / "iteration-1"
    found = json.loads((root / "benchmark.json").read_text())
    assert found["metadata"]["skill_name"] == "pdf"
    assert found["run_summary"]["delta"]["pass_rate"] == "+0.50"
    assert (root / "benchmark.md").read_text().startswith("# Benchmark of pdf")
    assert json.loads((root / "eval_feedback_aggregate.json").read_text())["total_runs"] == 8


def test_somebody_elses_benchmark_is_kept_and_contradicted(workspace: Path) -> None:
    given = {
        "metadata": {"skill_name": "forms", "executor_model": "m"},
        "run_summary": {"delta": {"pass_rate": "-0.50"}},
    }
    (workspace / "iteration-1" / "benchmark.json").write_text(json.dumps(given))
    done = assay(workspace)
    assert "says the pass rates differ by -0.50; treatment minus control is +0.50" in done.stderr
    assert json.loads((workspace / "iteration-1" / "benchmark.given.json").read_text()) == given
    assert json.loads((workspace / "iteration-1" / "benchmark.json").read_text())["metadata"]["skill_name"] == "forms"
    assay(workspace)
    assert json.loads((workspace / "iteration-1" / "benchmark.given.json").read_text()) == given


def test_gates_decide_the_exit_code_and_leave_their_files(workspace: Path, tmp_path: Path) -> None:
    junit, summary = tmp_path / "junit.xml", tmp_path / "summary.md"
    done = assay(workspace, "--fail-under", "0.9", "--junit", junit, "--summary", summary, "-o", tmp_path / "out.json")
    assert done.returncode == 1
    assert "failed: --fail-under 0.9" in done.stdout
    assert b"<failure" in junit.read_bytes()
    assert summary.read_text().startswith("### pdf: helps")
    assert (tmp_path / "out.json").is_file() and (tmp_path / "out.md").is_file()
    assert not (workspace / "iteration-1" / "benchmark.json").exists()
    assert assay(workspace, "--require-verdict", "helps").returncode == 0


def test_no_runs_is_an_error(tmp_path: Path) -> None:
    done = assay(tmp_path)
    assert done.returncode != 0
    assert "no runs in" in done.stderr
    assert "Traceback" not in done.stderr


def test_escape_sequences_of_strangers_do_not_reach_the_terminal(workspace: Path) -> None:
    done = assay(workspace, "--skill-name", "x", "--treatment", "\x1b[31mred")
    assert "\x1b" not in done.stdout
