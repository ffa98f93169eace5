"""Old beside new: which cases match, and what is said to be decided differently."""

from cli.regrade_table import regrade_table
from schemas.grading import GradedExpectation, Grading
from schemas.states import Outcome, Role
from schemas.structural import CheckedExpectation, Structural
from schemas.suite import Case
from service.aggregation.records import CaseFacts, RunRecord
from service.regrade import match_suites
from service.regraded import regrade_document


def record(passed: bool, outcome: Outcome = Outcome.SCORED, check: bool = True) -> RunRecord:
    structural = Structural(expectations=(CheckedExpectation(type="file_exists", text="a file", passed=check),))
    grading = Grading(expectations=(GradedExpectation(text="names the total", passed=passed),))
    facts = CaseFacts(1, "one", "prompt", ("names the total",))
    judged = grading if outcome is Outcome.SCORED else None
    return RunRecord(facts, "with_skill", Role.TREATMENT, 1, outcome, structural, judged)


def summary(rate: float) -> dict[str, object]:
    return {"with_skill": {"pass_rate": {"mean": rate}, "time_seconds": {"mean": 3.0}}, "delta": {"pass_rate": "+0.5"}}


def test_cases_of_two_suites_match_by_id_and_its_type() -> None:
    old = [Case(id=1, prompt="a"), Case(id="2", prompt="b"), Case(id=3, prompt="c")]
    new = [Case(id=2, prompt="x"), Case(id=3, prompt="y"), Case(id=1, prompt="z")]

    places, findings = match_suites(old, new)

    assert {before: after for before, (after, _) in places.items()} == {0: 2, 2: 1}
    assert [(finding.code, finding.path) for finding in findings] == [
        ("case_without_runs", "evals[0]"),
        ("case_left_out", ""),
    ]


def test_only_runs_that_are_decided_differently_are_listed() -> None:
    pairs = [(record(True), record(True)), (record(True), record(False)), (record(True), record(True, check=False))]

    document = regrade_document("old", (summary(1.0), summary(0.5)), iter(pairs))

    assert (document["compared_runs"], document["different_runs"]) == (3, 2)
    assert [run["changes"] for run in document["runs"]] == [
        [{"what": "names the total", "old": True, "new": False}],
        [{"what": "a file", "old": True, "new": False}],
    ]
    assert document["configurations"] == {"with_skill": {"old": {"pass_rate": 1.0}, "new": {"pass_rate": 0.5}}}


def test_another_outcome_is_a_difference_though_nothing_was_decided_anew() -> None:
    failed = RunRecord(record(True).case, "with_skill", Role.TREATMENT, 1, Outcome.JUDGE_ERROR, reason="no answer")
    again = RunRecord(record(True).case, "with_skill", Role.TREATMENT, 1, Outcome.UNGRADED, reason="nobody judges")

    document = regrade_document("old", ({}, {}), iter([(failed, again)]))

    assert document["runs"][0]["old"] == {"outcome": "judge_error", "pass_rate": None, "reason": "no answer"}
    assert document["runs"][0]["new"]["outcome"] == "ungraded"


def test_the_table_shows_figures_and_decisions_and_obeys_no_control_character() -> None:
    document = regrade_document("old", (summary(1.0), {}), iter([(record(True), record(False))]))
    document["runs"][0]["changes"][0]["what"] = "red \x1b[31m" + "x" * 80

    lines = list(regrade_table(document))

    assert lines[0] == "1 of 1 runs are decided differently than in batch old"
    assert lines[2].split() == ["with_skill", "pass_rate", "1.0000", "-"]
    assert lines[3].startswith("  1/with_skill/1: passed -> failed: red \ufffd[31mxx") and lines[3].endswith("...")


def test_a_long_table_says_how_much_it_leaves_out() -> None:
    document = regrade_document("old", ({}, {}), iter([(record(True), record(False))] * 30))

    assert list(regrade_table(document))[-1] == "  ... and 10 more, listed in regrade.json"


def test_the_table_says_when_unchanged_statements_were_judged_along_with_a_changed_one() -> None:
    asked_along = {"what": "is polite", "old": True, "new": False}
    is_new = {"what": "rhymes", "old": None, "new": True}

    def table(*changes: dict[str, object]) -> str:
        same = {"outcome": "scored", "pass_rate": 1.0, "reason": None}
        run = {"case": 1, "configuration": "a", "run_number": 1, "old": same, "new": same, "changes": list(changes)}
        head = {"regrade_of": "old", "compared_runs": 1, "different_runs": 1, "configurations": {}}
        return "\n".join(regrade_table({**head, "runs": [run]}))

    assert "a changed case is judged as a whole" in table(asked_along, is_new)
    assert "as a whole" not in table(asked_along) and "as a whole" not in table(is_new)
