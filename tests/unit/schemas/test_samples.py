"""Every sample of the dialects' documentation: read, validated, written back, equal."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from schemas.dialects import Dialect, Kind, read, write
from schemas.dialects.place import Place
from schemas.dialects.published import json_schema
from schemas.dialects.skill_evaluator import CASE, STRUCTURAL_EXPECTATION

SAMPLES = Path(__file__).parents[2] / "fixtures" / "samples"
FRAGMENTS = {"structural_expectation", "quality_rubric"}
DOCUMENTS = sorted(path for path in SAMPLES.glob("*/*.json") if path.stem not in FRAGMENTS)


def dialect_of(path: Path) -> Dialect:
    return Dialect(path.parent.name.removesuffix("_short"))


def name_of(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


def test_there_are_all_samples() -> None:
    assert len(DOCUMENTS) == 23


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_a_sample_is_recognised_and_read_without_error(path: Path) -> None:
    reading = read(path.read_bytes())

    assert (reading.kind, reading.dialect) == (Kind(path.stem), dialect_of(path))
    assert reading.ok and reading.document is not None


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_a_sample_written_back_is_the_same_json_in_the_same_order(path: Path) -> None:
    reading = read(path.read_bytes())
    assert reading.document is not None

    written = write(reading.document, dialect_of(path))

    # As text, because 4 == 4.0 and {"a", "b"} == {"b", "a"} for Python.
    assert json.dumps(written) == json.dumps(json.loads(path.read_bytes()))


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_a_sample_satisfies_the_published_schema(path: Path) -> None:
    schema = json_schema(Kind(path.stem), dialect_of(path))

    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(path.read_bytes()), schema)


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_every_key_of_a_sample_has_a_place_in_the_model(path: Path) -> None:
    document = read(path.read_bytes()).document
    assert document is not None

    assert extras_of(document.model_dump()) == []


def extras_of(dumped: Any) -> list[str]:
    """Unknown keys anywhere in a dumped document."""
    if isinstance(dumped, dict):
        own = list(dumped.get("extra") or {})
        return own + [name for item in dumped.values() for name in extras_of(item)]
    return [name for item in dumped for name in extras_of(item)] if isinstance(dumped, tuple | list) else []


def test_the_fragments_of_a_suite_are_read_and_written_too() -> None:
    expectation = json.loads((SAMPLES / "skill_evaluator/structural_expectation.json").read_bytes())
    rubric = json.loads((SAMPLES / "skill_evaluator/quality_rubric.json").read_bytes())
    rubric_codec = CASE.key("quality_rubric").codec

    read_expectation = STRUCTURAL_EXPECTATION.read(expectation, Place([]))
    read_rubric = rubric_codec.read(rubric, Place([]))

    assert json.dumps(STRUCTURAL_EXPECTATION.write(read_expectation)) == json.dumps(expectation)
    assert json.dumps(rubric_codec.write(read_rubric)) == json.dumps(rubric)


CONTRADICTIONS = {
    "skill_evaluator/structural": [("summary", "list_differs")],
    "skill_evaluator/grading": [("summary", "list_differs")],
    "skill_creator_short/grading": [("summary", "list_differs")],
    "skill_creator/grading": [("summary", "list_differs")],
    "skill_creator/timing": [("", "time_differs")],
    "skill_creator/benchmark": [
        ("runs[0].result", "rate_differs"),
        ("runs[0].result", "list_differs"),
        ("metadata.evals_run", "runs_missing"),
        ("metadata.runs_per_configuration", "runs_missing"),
        ("run_summary.without_skill", "runs_missing"),
    ],
    "skill_creator/comparison": [
        ("expectation_results.A", "list_differs"),
        ("expectation_results.B", "list_differs"),
    ],
}


@pytest.mark.parametrize("path", DOCUMENTS, ids=name_of)
def test_what_contradicts_itself_in_a_sample_is_a_warning(path: Path) -> None:
    found = [(finding.path, finding.code) for finding in read(path.read_bytes()).findings]

    assert found == CONTRADICTIONS.get(name_of(path), [])
