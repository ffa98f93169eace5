"""Scripts as checks, in the real sandbox."""

import functools
import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli.main import app, exit_code
from schemas.suite import Case, StructuralExpectation
from service.checks import Tools, check
from service.checks.engine import Engine
from service.errors import AssayError, BadInput, NotFound
from service.sandbox import Mount, SandboxFailed, open_sandbox
from service.sandbox.reader import Reader


@pytest.fixture(scope="module")
def engine():
    with Engine() as made:
        yield made


@pytest.fixture(scope="module")
def box(bubblewrap):
    return open_sandbox("bwrap")


@pytest.fixture
def outputs(tmp_path) -> Path:
    folder = tmp_path / "outputs"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.txt").write_text("hello\n")
    (folder / "link").symlink_to("/etc/passwd")
    return folder


@pytest.fixture
def structural(engine, box, outputs):
    def make(*scripts: dict[str, object], timeout_seconds: float = 60):
        expectations = tuple(
            StructuralExpectation(id=f"S{number}", type="custom_script", params=params, critical=True)
            for number, params in enumerate(scripts, 1)
        )
        case = Case(id=1, prompt="p", structural=expectations)
        return check(case, Reader(outputs), None, None, Tools(engine, lambda: box), timeout_seconds)

    return make


@pytest.mark.parametrize(
    ("params", "passed", "evidence"),
    [
        ({"script": "true"}, True, "Script exit code 0"),
        ({"script": "cat a.txt"}, True, "Script exit code 0: hello"),
        ({"script": "echo out; echo err >&2; exit 3"}, False, "Script exit code 3: out"),
        ({"script": "echo err >&2; exit 4"}, False, "Script exit code 4: err"),
        ({"script": "printf 'a\\nb\\tc\\033d'"}, True, "Script exit code 0: a b c\\x1bd"),
        ({"script": "printf 'z%.0s' $(seq 500)"}, True, f"Script exit code 0: {'z' * 200}"),
        ({"script": "no-such"}, False, "Script exit code 127: /bin/bash: line 1: no-such: command not found"),
        ({"script": "sleep 30", "timeout_seconds": 1}, False, "Script timed out after 1s"),
        ({"script": "sleep 30", "timeout_seconds": 0.5}, False, "Script timed out after 0.5s"),
        ({"script": "yes"}, False, "Script ended because it wrote too much (output)"),
        ({"script": 'test "$OUTPUTS_DIR" = "$PWD" && cat "$OUTPUTS_DIR/a.txt"'}, True, "Script exit code 0: hello"),
        ({"script": "test -d sub && ls"}, True, "Script exit code 0: a.txt sub"),
        ({"script": "echo x > new"}, False, "Script exit code 1: /bin/bash: line 1: new: Read-only file system"),
        ({"script": "echo x > new && ls", "writable": True}, True, "Script exit code 0: a.txt new sub"),
        ({"script": "exec 3<>/dev/tcp/127.0.0.1/1 && echo net || echo none"}, True, "Script exit code 0: none"),
    ],
)  # fmt: skip
def test_a_script_decides(structural, params, passed, evidence):
    made = structural(params)
    assert (made.expectations[0].passed, made.expectations[0].evidence) == (passed, evidence)
    assert made.gate_passed is passed


def test_the_command_succeeds_under_its_other_name(engine, box, outputs):
    one = StructuralExpectation(id="S1", type="command_succeeds", params={"command": "grep -q hello a.txt"})
    case = Case(id=1, prompt="p", structural=(one,))
    assert check(case, Reader(outputs), None, None, Tools(engine, lambda: box)).expectations[0].passed is True


def test_what_one_script_writes_no_other_sees(structural, outputs):
    made = structural(
        {"script": "rm a.txt; echo x > planted", "writable": True},
        {"script": "cat a.txt && ! test -e planted"},
        {"script": "cat a.txt && ! test -e planted", "writable": True},
    )
    assert [one.passed for one in made.expectations] == [True, True, True]
    assert sorted(path.name for path in outputs.iterdir()) == ["a.txt", "link", "sub"]


def test_the_worker_s_secrets_are_not_in_the_script_s_environment(structural, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    assert "secret" not in structural({"script": "env | grep -i -e secret -e anthropic"}).expectations[0].evidence


def test_results_record_the_tier_that_ran_a_script(structural, engine, outputs):
    assert structural({"script": "true"}).extra == {"sandbox": "bwrap"}
    assert structural().extra == {}

    one = StructuralExpectation(id="S1", type="custom_script", params={"script": "true"})
    tools = Tools(engine, functools.cache(lambda: open_sandbox("none")))
    made = check(Case(id=1, prompt="p", structural=(one,)), Reader(outputs), None, None, tools)
    assert made.extra == {"sandbox": "none"}


def test_a_sandbox_that_breaks_leaves_the_check_open(engine, box, outputs):
    class Breaking:
        tier = "bwrap"
        place = box.place

        def run(self, command):
            nowhere = (Mount(Path("/no/such/folder"), "/x"),)
            return box.run(type(command)(**{**command.__dict__, "mounts": nowhere}))

    one = StructuralExpectation(id="S1", type="custom_script", params={"script": "true"}, critical=True)
    case = Case(id=1, prompt="p", structural=(one,))
    made = check(case, Reader(outputs), None, None, Tools(engine, Breaking))
    assert (made.expectations[0].passed, made.gate_passed) == (None, None)
    assert "/no/such" in made.expectations[0].error
    with pytest.raises(SandboxFailed):
        Breaking().run(_command(outputs))


def _command(outputs):
    from service.sandbox import Command, bash

    return Command(bash("true"), outputs)


def test_a_script_cut_short_by_the_case_s_time_is_open(structural):
    made = structural({"script": "sleep 30"}, timeout_seconds=1)
    assert made.expectations[0].passed is None
    assert "time for this case's checks ended" in made.expectations[0].error


SUITE = {
    "skill_name": "s",
    "evals": [
        {
            "id": 1,
            "prompt": "p",
            "structural_expectations": [
                {"id": "S1", "type": "file_exists", "description": "A text", "pattern": "*.txt", "critical": True}
            ],
        },
        {
            "id": "two",
            "prompt": "p",
            "structural_expectations": [
                {"id": "S1", "type": "file_exists", "description": "A page", "pattern": "*.html", "critical": True}
            ],
        },
        {
            "id": 3,
            "prompt": "p",
            "structural_expectations": [{"id": "S1", "type": "tool_used", "tool": "Bash", "critical": True}],
        },
        {
            "id": 4,
            "prompt": "p",
            "structural_expectations": [{"id": "S1", "type": "custom_script", "script": "cat a.txt", "critical": True}],
        },
        {"id": 5, "prompt": "p", "structural_expectations": [{"id": "S1", "type": "no_errors", "critical": True}]},
    ],
}


@pytest.fixture
def assay(tmp_path, outputs):
    (tmp_path / "evals.json").write_text(json.dumps(SUITE))

    def run(case: str, *more: str):
        return CliRunner().invoke(
            app, ["check", str(outputs), "--evals", str(tmp_path / "evals.json"), "--case", case, *more]
        )

    return run


@pytest.mark.parametrize(("case", "code", "gate"), [("1", 0, True), ("two", 1, False), ("3", 2, None)])
def test_the_exit_code_tells_the_gate(assay, case, code, gate):
    done = assay(case)
    assert done.exit_code == code
    assert json.loads(done.stdout)["gate_passed"] is gate


def test_the_command_writes_the_file_and_tells_people(assay, tmp_path):
    done = assay("1", "-o", str(tmp_path / "structural.json"))
    assert done.stdout == ""
    assert done.stderr == "pass  S1 (critical)  A text: Found: a.txt\ngate passed\n"
    assert json.loads((tmp_path / "structural.json").read_text()) == {
        "expectations": [
            {
                "id": "S1",
                "text": "A text",
                "type": "file_exists",
                "passed": True,
                "evidence": "Found: a.txt",
                "critical": True,
            }
        ],
        "summary": {"passed": 1, "failed": 0, "total": 1, "pass_rate": 1.0},
        "gate_passed": True,
    }


def test_scripts_run_from_the_command_line_too(assay, box):
    done = assay("4")
    assert (done.exit_code, json.loads(done.stdout)["sandbox"]) == (0, "bwrap")


def test_a_transcript_beside_the_outputs_or_by_name_is_used(assay, tmp_path):
    (tmp_path / "transcript.md").write_text("Error: beside")
    (tmp_path / "other.md").write_text("all is well")
    assert assay("5").exit_code == 1
    assert assay("5", "--transcript", str(tmp_path / "other.md")).exit_code == 0


def test_metrics_can_be_given(assay, tmp_path):
    (tmp_path / "metrics.json").write_text('{"tool_calls": {"Bash": 1}, "total_tool_calls": 1}')
    assert assay("3", "--metrics", str(tmp_path / "metrics.json")).exit_code == 0


def test_mistakes_are_one_sentence_and_code_three(assay, tmp_path):
    for done, kind in [(assay("9"), NotFound), (assay("1", "--transcript", str(tmp_path / "no")), NotFound)]:
        assert isinstance(done.exception, kind)
        assert isinstance(done.exception, AssayError)
        assert exit_code(done.exception) == 3
    (tmp_path / "evals.json").write_text('{"skill_name": "s", "evals": [{"id": 1}]}')
    assert isinstance(assay("1").exception, BadInput)


def test_an_operator_who_chose_no_sandbox_is_told_so_in_every_result(assay, monkeypatch):
    monkeypatch.setenv("ASSAY_SANDBOX", "none")
    assert json.loads(assay("4").stdout)["sandbox"] == "none"


def test_the_doctor_tells_which_sandbox_holds(box, monkeypatch):
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 0
    assert "bwrap: tried, holds" in done.stdout

    monkeypatch.setenv("ASSAY_SANDBOX", "none")
    assert "none: agents and scripts run unprotected" in CliRunner().invoke(app, ["doctor"]).stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_the_doctor_says_what_is_broken(box, tmp_path, monkeypatch):
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    monkeypatch.setattr("tempfile.tempdir", str(closed))
    done = CliRunner().invoke(app, ["doctor"])
    assert done.exit_code == 1
    assert "closed to others" in done.stdout
