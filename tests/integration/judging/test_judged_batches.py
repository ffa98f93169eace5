"""Whole batches judged by the simulator: what the files of runs and of the batch say about the judge."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.whole_batch import WithModels
from typer.testing import CliRunner

from cli.main import app
from service.judging.judgement import FirstAnswer, JudgeAnswer, SlotJudgement, TokensUsed
from service.judging.kept import KeptJudgements
from service.judging.verdict import Verdict
from service.storage.rows import RunRow
from service.submitting import Submission
from simulator import Simulator, start

# Three statements are asked, two of them controls of which one is false.
PASSES_ALL = {
    "statements": [{"id": f"E{number}", "evidence": "all is well", "passed": True} for number in (1, 2, 3)],
    "claims": [],
    "user_notes": {"uncertainties": [], "needs_review": [], "workarounds": []},
    "eval_feedback": {"suggestions": [], "overall": ""},
}
SETTINGS = {"command": "sh -c 'echo hi > answer.txt'", "judge_model": "simulated", "runs_per_eval": 2}


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with start() as running:
        yield running


@pytest.fixture
def parts(tmp_path: Path, simulator: Simulator) -> Iterator[WithModels]:
    opened = WithModels(tmp_path / "data", simulator.url, sandbox="none", rejudge_share=0.0)
    yield opened
    opened.close()


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    """A skill with one case of one statement."""
    (tmp_path / "skill" / "evals").mkdir(parents=True)
    (tmp_path / "skill" / "SKILL.md").write_text("---\nname: tiny\ndescription: for tests\n---\nWrite answer.txt.\n")
    evals = [{"id": 1, "prompt": "say hi", "expectations": ["The answer says hi"]}]
    suite = {"skill_name": "tiny", "evals": evals}
    (tmp_path / "skill" / "evals" / "evals.json").write_text(json.dumps(suite))
    return tmp_path / "skill"


def runs_of(parts: WithModels, batch_id: str) -> list[RunRow]:
    return list(parts.desk.runs(batch_id, "default"))


def file_of(parts: WithModels, run: RunRow, name: str) -> Any:
    return json.loads(parts.artifacts.get(parts.store.runs.files(run.id)[name].sha256))


def test_the_timing_of_a_judged_run_says_when_it_was_judged(parts: WithModels, skill: Path) -> None:
    batch_id = parts.run_batch(skill, **SETTINGS)

    run = runs_of(parts, batch_id)[0]
    timing, grading = (file_of(parts, run, name) for name in ("timing.json", "grading.json"))
    assert timing["executor_end"] <= timing["grader_start"] <= timing["grader_end"]
    assert timing["grader_duration_seconds"] == grading["timing"]["grader_duration_seconds"]
    together = timing["executor_duration_seconds"] + timing["grader_duration_seconds"]
    assert grading["timing"]["total_duration_seconds"] == pytest.approx(together)
    assert run.facts is not None and (run.facts["passed"] is not None, run.facts["total"]) == (True, 1)


def test_a_judge_that_gets_the_controls_wrong_is_counted_in_the_benchmark_and_the_report(
    parts: WithModels, simulator: Simulator, skill: Path
) -> None:
    simulator.configure(script={"judge": [{"match": {"kind": "judge"}, "answer": PASSES_ALL}]})

    batch_id = parts.run_batch(skill, **SETTINGS)

    assert {run.facts and run.facts["judge_failed"] for run in runs_of(parts, batch_id)} == {"control"}
    files = {
        name: parts.desk.aggregate_file(batch_id, "default", name).decode()
        for name in ("benchmark.json", "benchmark.md", "report.html")
    }
    assert json.loads(files["benchmark.json"])["coverage"]["judge_errors"] == {"control": 4}
    assert "4 judge_error (4 control)" in files["benchmark.md"]
    assert "4 judge error (4 control)" in files["report.html"]


def test_a_submit_says_what_its_judging_mode_costs(parts: WithModels, skill: Path) -> None:
    settings = {**SETTINGS, "judge_model": "claude-opus-5-5"}

    full, half = (
        parts.desk.submit(Submission(skill, settings={**settings, "judging": mode})).estimate
        for mode in ("realtime", "batch")
    )

    assert full is not None and full.cost_usd is not None and full.runs == 4
    assert half is not None and half.cost_usd is not None
    assert half.cost_usd.low == pytest.approx(full.cost_usd.low / 2)


def test_the_submit_command_says_the_cost(parts: WithModels, skill: Path) -> None:
    words = ["--command", "true", "--judge-model", "claude-opus-5-5", "--data", str(parts.settings.data)]

    done = CliRunner().invoke(app, ["submit", str(skill), *words])

    assert done.exit_code == 0, done.output
    assert re.search(r"estimated cost: \d+\.\d\d to \d+\.\d\d USD", done.stderr)
    assert re.fullmatch(r"[0-9a-z]{26}", done.stdout.strip())


def test_a_first_answer_is_kept_beside_its_judgement_until_that_is_there(parts: WithModels) -> None:
    kept = KeptJudgements(parts.store.engine)
    one = "a" * 64
    first = FirstAnswer(id=one, model="m", prompt_version="1", answer=JudgeAnswer("no", tokens=TokensUsed(input=7)))

    kept.put_first(first)
    before = kept.get(one)
    made = SlotJudgement(id=one, model="m", number=0, repeat=0, prompt_version="1", verdict=Verdict())
    kept.put(made)

    assert (before, kept.get(one), kept.get("b" * 64)) == (first, made, None)


def test_budgets_and_effort_of_the_judge_are_settings_of_the_installation(
    tmp_path: Path, simulator: Simulator, skill: Path
) -> None:
    long = {**SETTINGS, "command": "sh -c 'yes abcdefgh | head -n 2000 > answer.txt'", "runs_per_eval": 1}
    budgets: dict[str, Any] = {"judge_text_chars": 1_000, "judge_effort": "low"}
    parts = WithModels(tmp_path / "small", simulator.url, sandbox="none", rejudge_share=0.0, **budgets)

    parts.run_batch(skill, **long, baseline_comparison=False, analyst=False)
    parts.close()

    [asked] = [json.loads(request["body"]) for request in simulator.requests()]
    assert asked["output_config"]["effort"] == "low"
    assert "characters with" in json.dumps(asked["messages"]) and len(json.dumps(asked["messages"])) < 10_000
