"""The commands about files, as a user runs them."""

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import Result
from typer.testing import CliRunner

from cli.main import app
from service.bootstrap import Parts
from service.errors import BadInput
from service.settings import Settings
from service.submitting import Submission

ROOT = Path(__file__).parents[2]
SUITE = {"skill_name": "s", "evals": [{"id": 1, "prompt": "p", "expectations": ["e"]}]}


def assay(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def written(path: Path, value: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def objects(result: Result) -> list[dict[str, Any]]:
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_a_good_file_is_named_counted_and_exit_code_0(tmp_path: Path) -> None:
    path = written(tmp_path / "any-name.json", SUITE)

    result = assay("validate", path)

    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        f"{path}  evals (skill_creator)  1 case, 1 statement",
        "1 file, 1 without errors: 0 errors, 0 warnings, 0 notes",
    ]


def test_a_bad_file_is_exit_code_1_and_every_finding_one_line_with_its_place(tmp_path: Path) -> None:
    path = written(tmp_path / "evals.json", {"evals": [{"id": 1, "expectations": ["e"]}]})

    result = assay("validate", path)

    assert result.exit_code == 1
    assert f"  error    {path}:evals[0]  has no prompt (nor query, input, task)" in result.stdout.splitlines()


def test_broken_json_has_line_and_column(tmp_path: Path) -> None:
    path = written(tmp_path / "evals.json", '{\n "evals": [}')

    result = assay("validate", path)

    assert result.exit_code == 1 and f"{path}:2:12  not JSON: expecting value" in result.stdout


@pytest.mark.parametrize("what", ["missing", "empty"])
def test_nothing_to_read_is_exit_code_2(tmp_path: Path, what: str) -> None:
    (tmp_path / "empty").mkdir()

    assert assay("validate", tmp_path / what).exit_code == 2


def test_one_missing_file_among_good_ones_is_exit_code_1(tmp_path: Path) -> None:
    path = written(tmp_path / "a.json", SUITE)

    assert assay("validate", path, tmp_path / "missing").exit_code == 1


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.json")

    assert assay("validate", tmp_path / "pipe.json").exit_code == 2


def test_json_is_one_object_per_file(tmp_path: Path) -> None:
    good = written(tmp_path / "a.json", SUITE)
    bad = written(tmp_path / "b.json", {"evals": "later"})

    result = assay("validate", "--json", good, bad)

    assert result.exit_code == 1
    assert objects(result) == [
        {"file": str(good), "kind": "evals", "dialect": "skill_creator", "ok": True, "findings": []},
        {
            "file": str(bad),
            "kind": "evals",
            "dialect": "skill_creator",
            "ok": False,
            "findings": [
                {"level": "error", "path": "evals", "message": "must be a list, not a text", "code": "wrong_type"}
            ],
        },
    ]


def test_below_a_folder_other_peoples_json_is_skipped(tmp_path: Path) -> None:
    written(tmp_path / "package.json", {"name": "x"})
    written(tmp_path / "node_modules" / "evals.json", SUITE)
    written(tmp_path / ".cache" / "evals.json", SUITE)
    ours = written(tmp_path / "deep" / "down" / "timing.json", {"duration_ms": 3})
    (tmp_path / "link.json").symlink_to(ours)

    result = assay("validate", "--json", tmp_path)

    assert [(one["file"], one["kind"]) for one in objects(result)] == [(str(ours), "timing")]
    assert "1 other JSON file skipped" in assay("validate", tmp_path).stdout


def test_a_file_given_by_name_is_never_skipped(tmp_path: Path) -> None:
    path = written(tmp_path / "package.json", {"name": "x"})

    [one] = objects(assay("validate", "--json", path))

    assert (one["kind"], one["dialect"], one["ok"]) == ("unknown", None, False)


def test_input_files_are_looked_for_when_the_suite_stands_in_its_skill(tmp_path: Path) -> None:
    suite = {"evals": [{"id": 1, "prompt": "p", "expectations": ["e"], "files": ["a.txt", "b.txt"]}]}
    path = written(tmp_path / "skill" / "evals" / "evals.json", suite)
    alone = objects(assay("validate", "--json", path))[0]
    written(tmp_path / "skill" / "SKILL.md", "---\nname: skill\n---\n")
    written(tmp_path / "skill" / "evals" / "files" / "a.txt", "a")

    in_skill = objects(assay("validate", "--json", path))[0]

    assert alone["findings"] == []
    assert [(one["path"], one["code"]) for one in in_skill["findings"]] == [
        ("evals[0].files[0]", "file_elsewhere"),
        ("evals[0].files[1]", "file_missing"),
    ]


def test_a_case_that_asks_for_the_suite_or_the_skill_is_an_error_here_and_at_submit(tmp_path: Path) -> None:
    case = {"id": 1, "prompt": "p", "expectations": ["e"], "files": ["evals", "SKILL.md"]}
    path = written(tmp_path / "skill" / "evals" / "evals.json", {"evals": [case]})
    written(tmp_path / "skill" / "SKILL.md", "---\nname: skill\n---\n")
    places = [("evals[0].files[0]", "withheld_input"), ("evals[0].files[1]", "withheld_input")]

    [one] = objects(assay("validate", "--json", path))
    parts = Parts(Settings(data=tmp_path / "data"))
    preview = parts.desk.preview(Submission(tmp_path / "skill", settings={"command": "true"}))
    parts.close()

    assert [(finding["path"], finding["code"]) for finding in one["findings"]] == places
    assert [(finding.path, finding.code) for finding in preview.findings] == places
    assert preview.estimate is None


def test_words_of_a_file_cannot_move_the_cursor(tmp_path: Path) -> None:
    path = written(
        tmp_path / "a.json", {"evals": [{"id": 1, "prompt": "p", "assertions": [{"type": "\x1b[31m\n", "text": "t"}]}]}
    )

    assert "\x1b" not in assay("validate", path).stdout


def test_output_that_is_no_terminal_has_no_colour(tmp_path: Path) -> None:
    path = written(tmp_path / "evals.json", {"evals": "later"})

    assert "\x1b" not in assay("validate", path).stdout


def test_the_examples_are_without_a_finding() -> None:
    result = assay("validate", "--json", ROOT / "examples")

    assert result.exit_code == 0
    suites = [one for one in objects(result) if one["kind"] == "evals"]
    assert {one["dialect"] for one in suites} == {"cases", "skill_creator", "skill_evaluator"}
    assert [finding for one in suites for finding in one["findings"]] == []


def test_the_richest_example_uses_all_six_structural_types() -> None:
    suite = json.loads((ROOT / "examples" / "changelog-entry" / "evals" / "evals.json").read_text())

    types = {check["type"] for case in suite["evals"] for check in case["structural_expectations"]}

    assert types >= {"file_exists", "file_contains", "file_not_contains", "no_errors", "file_count", "custom_script"}


def test_a_conversion_is_printed_and_its_losses_go_to_stderr(tmp_path: Path) -> None:
    path = written(tmp_path / "evals.json", SUITE)

    result = assay("convert", path, "--to", "cases")

    assert result.exit_code == 0
    assert json.loads(result.stdout)["cases"][0]["expectations"][0]["description"] == "e"
    assert f"warning  {path}:cases[0].statements  statements become required criteria" in result.stderr


def test_a_conversion_can_be_written_to_a_file(tmp_path: Path) -> None:
    path = written(tmp_path / "evals.json", SUITE)

    assay("convert", path, "--to", "skill_evaluator", "-o", tmp_path / "out.json")

    assert json.loads((tmp_path / "out.json").read_text()) == SUITE


@pytest.mark.parametrize(
    ("value", "to", "sentence"),
    [
        (SUITE, "klingon", "no dialect to write is called 'klingon'"),
        ({"evals": "x"}, "cases", "evals must be a list"),
        ({"duration_ms": 3}, "cases", "the cases dialect has no timing"),
        ([{"query": "q", "should_trigger": True}], "cases", "nothing to convert"),
    ],
)
def test_what_cannot_be_converted_is_one_sentence(tmp_path: Path, value: Any, to: str, sentence: str) -> None:
    result = assay("convert", written(tmp_path / "a.json", value), "--to", to)

    assert isinstance(result.exception, BadInput) and sentence in str(result.exception)


def test_a_schema_is_printed_for_the_richest_dialect_or_the_one_asked_for() -> None:
    richest = json.loads(assay("schema", "evals").stdout)
    asked = json.loads(assay("schema", "evals", "--dialect", "cases").stdout)

    jsonschema.Draft202012Validator.check_schema(richest)
    assert (richest["$id"], asked["$id"]) == ("urn:assay:skill_evaluator:evals", "urn:assay:cases:evals")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("novel",), "no document is called 'novel'; there are evals"),
        (("timing", "--dialect", "cases"), "timing is written in skill_creator, not in 'cases'"),
    ],
)
def test_a_schema_that_is_not_there_is_one_sentence(arguments: tuple[str, ...], sentence: str) -> None:
    result = assay("schema", *arguments)

    assert isinstance(result.exception, BadInput) and str(result.exception).startswith(sentence)


@pytest.mark.parametrize("command", ["validate", "convert", "schema"])
def test_help_has_examples(command: str) -> None:
    assert "Examples" in assay(command, "--help").stdout
