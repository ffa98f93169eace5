"""From dialect to dialect, and what is said about the losses."""

import json
from pathlib import Path
from typing import Any

import pytest

from schemas.conversion import Conversion, NotWritten, convert
from schemas.dialects import Dialect, read

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "tests" / "fixtures" / "samples"


def converted(source: Path | dict[str, Any] | list[Any], to: Dialect) -> Conversion:
    data = source.read_bytes() if isinstance(source, Path) else json.dumps(source).encode()
    return convert(read(data), to)


def said(conversion: Conversion) -> list[tuple[str, str]]:
    return [(loss.path, loss.message) for loss in conversion.losses]


def test_the_dialect_a_file_is_in_changes_and_loses_nothing() -> None:
    path = SAMPLES / "skill_evaluator" / "evals.json"

    conversion = converted(path, Dialect.SKILL_EVALUATOR)

    assert conversion.losses == () and conversion.value == json.loads(path.read_bytes())


def test_criteria_become_statements() -> None:
    conversion = converted(SAMPLES / "cases" / "evals.json", Dialect.SKILL_CREATOR)

    assert conversion.value == {
        "skill_name": "skill",
        "evals": [
            {
                "id": "case-01",
                "prompt": "Create a skill for managing Docker deployments",
                "expectations": [
                    "frontmatter: Has valid YAML frontmatter with name and description fields",
                    "token-efficiency: SKILL.md body is under 500 lines",
                ],
            }
        ],
    }
    assert said(conversion) == [
        ("skill_path", "only its last part is kept, as skill_name"),
        ("cases[0].criteria", "criteria become statements: passed or not, no score, none optional"),
    ]


def test_statements_become_required_criteria() -> None:
    conversion = converted(SAMPLES / "skill_creator" / "evals.json", Dialect.CASES)

    assert conversion.value == {
        "version": "1.0",
        "skill": "example-skill",
        "cases": [
            {
                "id": 1,
                "prompt": "User's example prompt",
                "files": ["evals/files/sample1.pdf"],
                "expectations": [
                    {
                        "criterion": "the-output-includes-x",
                        "description": "The output includes X",
                        "required": True,
                    },
                    {
                        "criterion": "the-skill-used-script-y",
                        "description": "The skill used script Y",
                        "required": True,
                    },
                ],
            }
        ],
    }
    assert ("cases[0].expected_output", "expected_output has no place in the cases dialect") in said(conversion)


def test_structural_expectations_and_rubrics_have_no_place_in_skill_creator() -> None:
    conversion = converted(SAMPLES / "skill_evaluator" / "evals.json", Dialect.SKILL_CREATOR)

    assert isinstance(conversion.value, dict)
    assert conversion.value["evals"][0]["expectations"] == ["Test file created"]  # type: ignore[index, call-overload]
    assert said(conversion) == [
        ("cases[0].structural", "structural expectations become statements: the judge decides, nothing gates"),
        ("cases[0].rubric", "rubric has no place in the skill_creator dialect"),
        ("config", "config has no place in the skill_creator dialect"),
    ]


def test_typed_objects_from_the_wild_become_proper_checks() -> None:
    source = [{"id": 1, "prompt": "p", "assertions": [{"type": "file-exists", "path": "a.md", "id": "has-a"}, "kind"]}]

    conversion = converted(source, Dialect.SKILL_EVALUATOR)

    assert conversion.value == {
        "evals": [
            {
                "id": 1,
                "prompt": "p",
                "expectations": ["kind"],
                "structural_expectations": [{"id": "has-a", "type": "file_exists", "pattern": "a.md"}],
            }
        ]
    }
    assert conversion.losses == ()


def test_ids_of_statements_are_lost_and_counted() -> None:
    items = [{"id": "1.1", "text": "a"}, {"id": "1.2", "text": "b"}]

    conversion = converted([{"id": 1, "prompt": "p", "assertions": items}], Dialect.SKILL_CREATOR)

    assert said(conversion) == [
        ("cases[0].statements", "statements are texts: their ids and other keys are lost (and at 1 more place)")
    ]


def test_scores_become_verdicts_and_are_carried_along() -> None:
    conversion = converted(SAMPLES / "cases" / "grading.json", Dialect.SKILL_CREATOR)

    value: Any = conversion.value
    assert value["expectations"] == [
        {
            "text": "frontmatter",
            "passed": True,
            "evidence": "Valid YAML with name and description fields; nuanced triggers",
            "score": 4,
        }
    ]
    assert value["summary"] == {"passed": 1, "failed": 0, "total": 1, "pass_rate": 1.0}
    assert value["user_notes_summary"]["uncertainties"] == [
        "Executor was uncertain about whether to include script examples"
    ]
    assert {path for path, _ in said(conversion)} >= {"case_id", "version", "run", "overall_score", "conventions"}


def test_verdicts_become_scores() -> None:
    value: Any = converted(SAMPLES / "skill_creator" / "grading.json", Dialect.CASES).value

    assert [(one["score"], one["passed"]) for one in value["results"]] == [(4, True), (1, False)]
    assert (value["overall_score"], value["overall"]) == (2.5, "fail")
    assert value["user_notes_summary"] == (
        "Used 2023 data, may be stale; Fell back to text overlay for non-fillable fields"
    )


def test_histories_count_or_name_their_versions() -> None:
    to_cases: Any = converted(SAMPLES / "skill_creator" / "history.json", Dialect.CASES).value
    to_creator: Any = converted(SAMPLES / "cases" / "history.json", Dialect.SKILL_CREATOR).value

    assert [one["version"] for one in to_cases["versions"]] == [0, 1, 2] and to_cases["current_version"] == 2
    assert [one["version"] for one in to_creator["iterations"]] == ["v0"]


def test_a_benchmark_has_no_place_among_cases() -> None:
    with pytest.raises(NotWritten):
        converted(SAMPLES / "skill_creator" / "benchmark.json", Dialect.CASES)


@pytest.mark.parametrize("example", ["changelog-entry", "csv-summary", "skill-review"])
@pytest.mark.parametrize("to", [Dialect.SKILL_EVALUATOR, Dialect.SKILL_CREATOR, Dialect.CASES])
def test_the_examples_convert_to_suites_that_read_without_error(example: str, to: Dialect) -> None:
    conversion = converted(ROOT / "examples" / example / "evals" / "evals.json", to)

    reading = read(json.dumps(conversion.value).encode())

    assert reading.ok and reading.document is not None


def test_a_foreign_key_that_means_nothing_in_the_target_is_lost_and_said() -> None:
    foreign = {"case_id": 0, "convention_compliance": {}, "execution_metrics": {}, "expectations": {}}

    conversion = converted(foreign, Dialect.SKILL_CREATOR)

    assert isinstance(conversion.value, dict) and "expectations" not in conversion.value
    assert ("expectations", "expectations has no place in the skill_creator dialect") in said(conversion)
