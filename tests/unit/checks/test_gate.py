"""structural.json as a whole: entries, summary and gate."""

import pytest

from schemas.dialects import Dialect, write
from schemas.suite import Case, StructuralExpectation
from service.checks import Tools, check
from service.errors import Unavailable
from service.sandbox.reader import Caps, Reader

PASSES = ("file_count", {"pattern": "*", "operator": "==", "count": 0})
FAILS = ("file_exists", {"pattern": "*"})
OPEN = ("tool_used", {"tool": "Bash"})


def _no_sandbox():
    raise Unavailable("none here")


@pytest.fixture
def structural(tmp_path, engine):
    def make(*rows):
        expectations = tuple(
            StructuralExpectation(id=f"S{number}", type=kind, params=params, critical=critical)
            for number, ((kind, params), critical) in enumerate(rows, 1)
        )
        case = Case(id=1, prompt="p", structural=expectations)
        return check(case, Reader(tmp_path), None, None, Tools(engine, _no_sandbox))

    return make


@pytest.mark.parametrize(
    ("rows", "gate", "counts"),
    [
        ([], True, (0, 0, 0, None)),
        ([(PASSES, True)], True, (1, 0, 1, 1.0)),
        ([(PASSES, True), (FAILS, None)], True, (1, 1, 2, 0.5)),
        ([(PASSES, True), (FAILS, True)], False, (1, 1, 2, 0.5)),
        ([(PASSES, None), (FAILS, False), (PASSES, None)], True, (2, 1, 3, 0.6667)),
        ([(OPEN, True), (PASSES, True)], None, (1, 0, 1, 1.0)),
        ([(OPEN, None), (PASSES, True)], True, (1, 0, 1, 1.0)),
        ([(OPEN, True), (FAILS, True)], False, (0, 1, 1, 0.0)),
        ([(OPEN, True)], None, (0, 0, 0, None)),
    ],
)
def test_the_gate_falls_with_a_critical_failure_and_stays_open_without_a_decision(structural, rows, gate, counts):
    made = structural(*rows)
    summary = made.summary
    assert made.gate_passed is gate
    assert (summary.passed, summary.failed, summary.total, summary.pass_rate) == counts
    assert summary.extra.get("undecided", 0) == sum(row[0] is OPEN for row in rows)


def test_the_file_has_the_keys_and_the_order_of_its_format(structural):
    written = write(structural((FAILS, True)), Dialect.SKILL_EVALUATOR)
    assert list(written) == ["expectations", "summary", "gate_passed"]
    assert list(written["expectations"][0]) == ["id", "text", "type", "passed", "evidence", "critical"]
    assert list(written["summary"]) == ["passed", "failed", "total", "pass_rate"]


def test_nothing_to_check_is_written_as_null_and_not_as_zero(structural):
    written = write(structural(), Dialect.SKILL_EVALUATOR)
    assert written == {
        "expectations": [],
        "summary": {"passed": 0, "failed": 0, "total": 0, "pass_rate": None},
        "gate_passed": True,
    }


def test_what_was_not_decided_is_written_with_its_reason(structural):
    written = write(structural((OPEN, True)), Dialect.SKILL_EVALUATOR)
    assert written["gate_passed"] is None
    assert written["expectations"][0]["passed"] is None
    assert written["expectations"][0]["error"] == "the metrics of this run do not say which tools were called"
    assert written["summary"]["undecided"] == 1


def test_the_description_is_the_text_and_the_type_stands_in_for_it(tmp_path, engine):
    case = Case(
        id=1,
        prompt="p",
        structural=(
            StructuralExpectation(id="S1", type="no_errors", description="No errors"),
            StructuralExpectation(id="S2", type="no_errors"),
        ),
    )
    made = check(case, Reader(tmp_path), None, None, Tools(engine, _no_sandbox))
    assert [(one.id, one.text, one.critical) for one in made.expectations] == [
        ("S1", "No errors", False),
        ("S2", "no_errors", False),
    ]


def test_outputs_that_cannot_be_listed_leave_everything_open(tmp_path, engine):
    for number in range(5):
        (tmp_path / str(number)).touch()
    case = Case(
        id=1,
        prompt="p",
        structural=(StructuralExpectation(id="S1", type="file_exists", params={"pattern": "*"}, critical=True),),
    )
    made = check(case, Reader(tmp_path, Caps(entries=3)), None, None, Tools(engine, _no_sandbox))
    assert made.gate_passed is None
    assert made.expectations[0].error == "there are more than 3 files and folders"


def test_checks_that_come_after_the_time_is_up_are_open(tmp_path, engine):
    case = Case(id=1, prompt="p", structural=(StructuralExpectation(id="S1", type="no_errors", critical=True),))
    made = check(case, Reader(tmp_path), None, None, Tools(engine, _no_sandbox), timeout_seconds=0)
    assert made.gate_passed is None
    assert "time for this case's checks was used up" in made.expectations[0].error
