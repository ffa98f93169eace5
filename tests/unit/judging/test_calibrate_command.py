"""`assay calibrate` on files."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from cli.main import app
from service.errors import BadInput, CannotDecide, NotFound

GOOD = [{"human": True, "judge": True}] * 20 + [{"human": False, "judge": False}] * 20


def invoked(folder: Path, labels: Any, *options: str) -> Any:
    file = folder / "labels.json"
    file.write_text(labels if isinstance(labels, str) else json.dumps(labels))
    return CliRunner().invoke(app, ["calibrate", str(file), *options])


def test_a_good_judge_is_told_with_its_numbers(tmp_path: Path) -> None:
    result = invoked(tmp_path, GOOD)

    assert result.exit_code == 0, result.output
    assert "sensitivity 0.95" in result.output
    assert "kappa 1.00" in result.output


def test_a_given_rate_is_corrected(tmp_path: Path) -> None:
    result = invoked(tmp_path, {"labels": GOOD}, "--pass-rate", "0.8", "--of", "300", "--json")

    rate = json.loads(result.output)["pass_rate"]
    assert rate["observed"] == 0.8
    assert rate["low"] < rate["corrected"] < rate["high"]


def test_the_judges_word_is_looked_up_in_a_grading(tmp_path: Path) -> None:
    expectations = [{"text": "a", "passed": True, "evidence": ""}, {"text": "b", "passed": False, "evidence": ""}]
    summary = {"passed": 1, "failed": 1, "total": 2, "pass_rate": 0.5}
    (tmp_path / "grading.json").write_text(json.dumps({"expectations": expectations, "summary": summary}))
    entry = {"grading": "grading.json"}

    result = invoked(
        tmp_path, [{**entry, "text": "a", "human": True}, {**entry, "text": "b", "human": False}], "--json"
    )

    assert json.loads(result.output)["agreement"] == 1.0


def test_a_coin_is_no_judge(tmp_path: Path) -> None:
    coin = [{"human": human, "judge": judge} for human in (True, False) for judge in (True, False)] * 10

    assert isinstance(invoked(tmp_path, coin).exception, CannotDecide)


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ("{", "no JSON"),
        ([], "no labels"),
        ([{"judge": True}], r"labels.json\[0\] has no `human`"),
        ([{"human": 1, "judge": True}], "no `human`"),
        ([{"human": True}], "says nothing of the judge"),
    ],
)
def test_labels_that_cannot_be_used_are_refused_with_their_place(tmp_path: Path, labels: Any, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        raise invoked(tmp_path, labels).exception


def test_a_grading_that_is_not_there_is_named(tmp_path: Path) -> None:
    result = invoked(tmp_path, [{"human": True, "grading": "gone.json", "text": "a"}])

    assert isinstance(result.exception, NotFound)
    assert "gone.json" in str(result.exception)
