"""Memory of a document: order, nulls, unknown keys, and what happens when somebody changes it."""

import json
from typing import Any

import pytest

from schemas.benchmark import Benchmark, ConfigurationSummary, RunSummary, Spread
from schemas.dialects import Dialect, NotWritten, read, write
from schemas.feedback import FeedbackAggregate, FeedbackSuggestion
from schemas.findings import Level
from schemas.history import History, HistoryVersion
from schemas.structural import CheckedExpectation, Structural, Summary
from schemas.suite import Case, Suite

SUITES: dict[str, Any] = {
    "order of keys": {"evals": [{"prompt": "p", "id": 1, "files": []}], "skill_name": "s"},
    "absent, null and empty": {
        "evals": [
            {"id": 1, "prompt": "p"},
            {"id": 2, "prompt": "p", "files": None, "expectations": None, "expected_output": None},
            {"id": 3, "prompt": "p", "files": [], "expectations": [], "expected_output": ""},
        ]
    },
    "unknown keys at every level": {
        "owner": "me",
        "evals": [{"difficulty": "hard", "id": 1, "prompt": "p", "tags": ["a", {"b": None}]}],
    },
    "null for an unknown key": {"evals": [{"id": 1, "prompt": "p", "seed": None}]},
    "a value of the wrong type": {"skill_name": 7, "evals": [{"id": 1, "prompt": "p", "name": ["x"]}]},
    "a structural check with nulls": {
        "evals": [
            {
                "id": 1,
                "prompt": "p",
                "structural_expectations": [
                    {"critical": None, "match": None, "type": "file_contains", "id": "S1", "match_any": ["a"], "why": 1}
                ],
            }
        ]
    },
    "numbers as they were written": {
        "evals": [
            {
                "id": 1,
                "prompt": "p",
                "quality_rubric": {"dimensions": [{"name": "a", "weight": 2.0}, {"name": "b", "weight": 2}]},
            }
        ]
    },
}


@pytest.mark.parametrize("value", SUITES.values(), ids=SUITES.keys())
def test_a_suite_comes_back_as_it_was(value: Any) -> None:
    reading = read(json.dumps(value).encode())
    assert reading.document is not None and reading.dialect is not None

    assert json.dumps(write(reading.document, reading.dialect)) == json.dumps(value)


def test_what_was_changed_is_written_in_its_old_place() -> None:
    reading = read(b'{"evals": [{"id": 1, "files": null, "prompt": "p", "name": 7}], "skill_name": "old"}')
    suite = reading.document
    assert isinstance(suite, Suite)

    case = suite.cases[0].model_copy(update={"files": ("a.txt",), "name": "seven", "expected_output": "new"})
    changed = suite.model_copy(update={"cases": (case,), "skill_name": "new"})

    assert json.dumps(write(changed, Dialect.SKILL_CREATOR)) == json.dumps(
        {
            "evals": [{"id": 1, "files": ["a.txt"], "prompt": "p", "name": "seven", "expected_output": "new"}],
            "skill_name": "new",
        }
    )


def test_a_key_of_another_dialect_is_used_and_kept_but_never_added() -> None:
    value = {
        "cases": [
            {"id": "a", "prompt": "p", "expected_output": "x", "expectations": [{"criterion": "c", "required": True}]}
        ]
    }
    suite = read(json.dumps(value).encode()).document
    assert isinstance(suite, Suite)

    assert suite.cases[0].expected_output == "x"
    assert write(suite, Dialect.CASES) == value
    assert write(Suite(cases=(Case(id=1, prompt="p", expected_output="x"),)), Dialect.CASES) == {
        "cases": [{"id": 1, "prompt": "p"}]
    }


def test_what_we_make_ourselves_is_written_in_the_order_of_the_dialect() -> None:
    undecided = CheckedExpectation(id="S1", text="t", type="file_exists", evidence="", error="no sandbox")
    structural = Structural(expectations=(undecided,), summary=Summary(passed=0, failed=0, total=1))

    assert json.dumps(write(structural, Dialect.SKILL_EVALUATOR)) == json.dumps(
        {
            "expectations": [
                {"id": "S1", "text": "t", "type": "file_exists", "passed": None, "evidence": "", "error": "no sandbox"}
            ],
            "summary": {"passed": 0, "failed": 0, "total": 1, "pass_rate": None},
            "gate_passed": None,
        }
    )


def test_configurations_stand_before_the_delta() -> None:
    arm = ConfigurationSummary(pass_rate=Spread(mean=1, stddev=0))
    summary = RunSummary(configurations={"with_skill": arm, "without_skill": arm}, delta={"pass_rate": "+0.00"})

    written = write(Benchmark(run_summary=summary), Dialect.SKILL_CREATOR)

    assert isinstance(written, dict) and isinstance(written["run_summary"], dict)
    assert list(written["run_summary"]) == ["with_skill", "without_skill", "delta"]


def test_nulls_that_mean_something_are_written() -> None:
    history = History(versions=(HistoryVersion(version="v0"),), current_best="v0")
    feedback = FeedbackAggregate(suggestions=(FeedbackSuggestion(frequency=1, reason="r"),))

    assert write(history, Dialect.SKILL_CREATOR) == {
        "current_best": "v0",
        "iterations": [{"version": "v0", "parent": None}],
    }
    assert write(feedback, Dialect.SKILL_EVALUATOR) == {
        "suggestions": [{"frequency": 1, "assertion": None, "reason": "r"}]
    }


def test_a_dialect_says_which_documents_it_has() -> None:
    with pytest.raises(NotWritten, match="the cases dialect has no benchmark; it has evals, history"):
        write(Benchmark(), Dialect.CASES)
    with pytest.raises(NotWritten, match="wild is read only"):
        write(Benchmark(), Dialect.WILD)


def test_a_schema_that_is_kept_in_the_repository_is_the_one_the_tables_give() -> None:
    from schemas.generate import FOLDER, schema_files

    kept = {path.relative_to(FOLDER): path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.json")}

    assert kept == schema_files(), "run `python -m schemas.generate`"


def test_a_document_with_errors_is_not_handed_out() -> None:
    reading = read(b'{"evals": [{"id": 1, "prompt": "p"}, {"id": 1, "prompt": "q"}]}')

    assert reading.document is None and not reading.ok
    assert reading.findings[0].level is Level.ERROR
