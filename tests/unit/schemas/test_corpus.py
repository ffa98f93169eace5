"""Files of other people, when a collection of them lies beside the repository; its folders are named for the kind."""

import json
from pathlib import Path

import pytest

from schemas.dialects import Dialect, Kind, Reading, read, write
from schemas.dialects.parsing import parse

CORPUS = Path(__file__).parents[4] / "shared" / "corpus"
WRITTEN = (Dialect.SKILL_EVALUATOR, Dialect.SKILL_CREATOR, Dialect.CASES)

pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="no ../shared/corpus beside the repository")


@pytest.fixture(scope="module")
def readings() -> dict[Path, Reading]:
    """Reading any of them raises nothing."""
    return {path: read(path.read_bytes()) for path in sorted(CORPUS.glob("*/*.json"))}


def test_the_kind_is_told_for_95_of_100_files(readings: dict[Path, Reading]) -> None:
    right = sum(reading.kind == path.parent.name for path, reading in readings.items())

    assert len(readings) > 200 and right / len(readings) >= 0.95


def has_usable_prompts(path: Path) -> bool:
    value = parse(path.read_bytes())
    cases = value if isinstance(value, list) else value["evals"] if isinstance(value, dict) else []
    assert isinstance(cases, list)
    spellings = ("prompt", "query", "input", "task")
    prompts = [next((case[name] for name in spellings if name in case), "") for case in cases if isinstance(case, dict)]
    return all(isinstance(prompt, str) and prompt.strip() for prompt in prompts)


def test_95_of_100_suites_with_usable_prompts_are_read(readings: dict[Path, Reading]) -> None:
    usable = {
        path: reading for path, reading in readings.items() if path.parent.name == "evals" and has_usable_prompts(path)
    }
    read_well = [path for path, reading in usable.items() if reading.ok and reading.kind is Kind.EVALS]

    assert len(usable) > 60 and len(read_well) / len(usable) >= 0.95


def test_what_is_refused_is_refused_with_a_place(readings: dict[Path, Reading]) -> None:
    suites = [reading for path, reading in readings.items() if path.parent.name == "evals" and not reading.ok]

    assert suites and all(
        finding.path for reading in suites for finding in reading.findings if finding.level == "error"
    )


def test_every_file_in_a_dialect_of_ours_comes_back_as_it_was(readings: dict[Path, Reading]) -> None:
    ours = [reading for reading in readings.values() if reading.document is not None and reading.dialect in WRITTEN]

    assert len(ours) > 100
    for reading in ours:
        assert reading.document is not None and reading.dialect is not None
        assert json.dumps(write(reading.document, reading.dialect)) == json.dumps(json.loads(reading.raw))
