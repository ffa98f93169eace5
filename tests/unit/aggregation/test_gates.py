import io
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from support.judged_runs import passing, plan, run

from schemas.states import Outcome
from service.aggregation.benchmark import Aggregates, aggregate
from service.aggregation.gates import Gates, GateState, judge_gates
from service.aggregation.junit import write_junit
from service.aggregation.markdown import benchmark_markdown, pull_request_summary
from service.aggregation.paired import Verdict
from service.aggregation.records import CaseFacts
from service.errors import BadInput


def batch(*pairs: tuple[int, int], total: int = 10) -> Aggregates:
    """One case per pair of passed counts (with, without)."""
    records = [
        run(case, arm, number, passing(passed, total))
        for case, pair in enumerate(pairs)
        for arm, passed in zip(("with_skill", "without_skill"), pair, strict=True)
        for number in (1, 2)
    ]
    return aggregate(records, plan())


HELPS = ((9, 2), (8, 2), (9, 3), (10, 2))
HURTS = ((2, 9), (2, 8), (3, 9), (2, 10))
OPEN = ((9, 2), (2, 8), (5, 5), (7, 6))


@pytest.mark.parametrize(
    ("pairs", "gates", "code"),
    [
        (HELPS, Gates(), 0),
        (HELPS, Gates(fail_under=0.8), 0),
        (HELPS, Gates(fail_under=0.95), 1),
        (HELPS, Gates(min_delta=0.5), 0),
        (HELPS, Gates(min_delta=0.9), 1),
        (OPEN, Gates(min_delta=0.01), 2),
        (HELPS, Gates(no_regression=True), 0),
        (HURTS, Gates(no_regression=True), 1),
        (OPEN, Gates(no_regression=True), 2),
        (HELPS, Gates(require_verdict=Verdict.HELPS), 0),
        (HURTS, Gates(require_verdict=Verdict.HELPS), 1),
        (OPEN, Gates(require_verdict=Verdict.HELPS), 2),
        (HURTS, Gates(fail_under=0.9, require_verdict=Verdict.HURTS), 1),
        (OPEN, Gates(fail_under=0.9, require_verdict=Verdict.HELPS), 1),
    ],
)
def test_gates_give_the_exit_code(pairs: tuple[tuple[int, int], ...], gates: Gates, code: int) -> None:
    assert judge_gates(batch(*pairs), gates).exit_code == code


def test_a_batch_without_a_counted_run_leaves_every_gate_undecided() -> None:
    found = aggregate([run(1, "with_skill", 1, outcome=Outcome.TIMEOUT)], plan())
    report = judge_gates(found, Gates(0.5, 0.1, True, Verdict.HELPS))
    assert {result.state for result in report.results} == {GateState.UNDECIDED}
    assert report.exit_code == 2


def with_survivors(scored: int, lost: int) -> Aggregates:
    """Six cases where the treatment always passes and the control never does, as far as their runs came through."""
    records = [
        run(case, arm, number, passing(10 if arm == "with_skill" else 0, 10))
        if number <= scored
        else run(case, arm, number, outcome=Outcome.JUDGE_ERROR)
        for case in range(6)
        for arm in ("with_skill", "without_skill")
        for number in range(1, scored + lost + 1)
    ]
    return aggregate(records, plan())


EVERY_GATE = Gates(fail_under=0.9, min_delta=0.1, no_regression=True, require_verdict=Verdict.HELPS)


def test_no_gate_passes_on_the_few_runs_that_came_through() -> None:
    report = judge_gates(with_survivors(1, 9), EVERY_GATE)

    assert {result.state for result in report.results} == {GateState.UNDECIDED}
    assert report.exit_code == 2
    assert all("108 runs missing: had they gone the other way" in result.sentence for result in report.results)


def test_missing_runs_that_could_change_nothing_do_not_stop_a_gate() -> None:
    assert judge_gates(with_survivors(7, 3), replace(EVERY_GATE, fail_under=0.65)).exit_code == 0
    assert judge_gates(with_survivors(10, 1), EVERY_GATE).exit_code == 0


def test_a_case_that_asks_for_nothing_is_not_missed() -> None:
    asked = [run(case, arm, 1, passing(9, 10)) for case in range(4) for arm in ("with_skill", "without_skill")]
    unasked = [run(9, arm, 1, outcome=Outcome.UNGRADED) for arm in ("with_skill", "without_skill")]
    assert judge_gates(aggregate([*asked, *unasked], plan()), Gates(fail_under=0.9)).exit_code == 0


@pytest.mark.parametrize("figure", [float("nan"), float("inf"), -0.1, 1.5])
def test_a_floor_that_is_no_share_is_refused(figure: float) -> None:
    with pytest.raises(BadInput, match="--fail-under"):
        Gates(fail_under=figure)
    if figure != -0.1:
        with pytest.raises(BadInput, match="--min-delta"):
            Gates(min_delta=figure)


def test_an_interim_batch_passes_no_gate() -> None:
    found = batch(*HELPS)
    interim = replace(found, plan=replace(found.plan, is_interim=True))
    assert judge_gates(interim, Gates(fail_under=0.1)).exit_code == 2


def test_junit_shows_gates_and_the_cases_that_got_worse() -> None:
    found = batch((9, 2), (1, 9))
    out = io.BytesIO()
    write_junit(found, judge_gates(found, Gates(fail_under=0.9)), out)

    suites = ElementTree.fromstring(out.getvalue()).findall("testsuite")

    assert [suite.get("failures") for suite in suites] == ["1", "1"]
    assert suites[1].findall("testcase")[1].find("failure") is not None


def test_junit_survives_characters_xml_does_not_have() -> None:
    records = [run(CaseFacts(1, 'evil \x00\x1b <b>"\ud800'), "with_skill", 1, passing(1, 1))]
    found = aggregate(records, plan())
    out = io.BytesIO()
    write_junit(found, judge_gates(found, Gates()), out)
    name = ElementTree.fromstring(out.getvalue()).find("testsuite[@name='cases']/testcase").get("name")
    assert name == 'evil \ufffd\ufffd <b>"\ufffd'


def test_the_summary_fits_a_pull_request_and_says_the_verdict_first() -> None:
    found = batch(*HELPS)
    text = pull_request_summary(found, judge_gates(found, Gates(fail_under=0.8)))
    assert text.startswith("### pdf: helps\n\nwith\\_skill helps: pass rate +0.68 (95 % interval")
    assert "**passed** --fail-under 0.8" in text
    assert len(text.splitlines()) < 40


def test_an_interim_or_simulated_verdict_says_so_before_it_says_anything() -> None:
    found = batch(*HELPS)
    interim = replace(found, plan=replace(found.plan, is_interim=True))
    assert benchmark_markdown(interim).splitlines()[2].startswith("**Interim: with\\_skill helps")
    found.tallies.simulated = 1
    assert benchmark_markdown(interim).splitlines()[2].startswith("**Interim, simulated: with")
    lines = pull_request_summary(interim).splitlines()
    assert lines[0] == "### pdf: interim, simulated: helps"
    assert lines[2].startswith("Interim, simulated: with")


def test_foreign_text_cannot_break_a_table_or_become_markup() -> None:
    facts = CaseFacts(1, "a | b\n<script>alert(1)</script> [x](javascript:1) `code`")
    found = aggregate(
        [run(facts, "with_skill", 1, passing(1, 1)), run(facts, "without_skill", 1, passing(0, 1))], plan()
    )
    row = next(line for line in benchmark_markdown(found).splitlines() if line.startswith("| a "))
    assert "a \\| b \\<script\\>" in row
    assert "\\[x\\](javascript:1)" in row


def test_the_markdown_names_arms_cases_and_notes() -> None:
    text = benchmark_markdown(batch(*HELPS))
    for part in ("# Benchmark of pdf", "## Arms", "## Cases", "## Notes", "## Provenance", "16 of 16 planned runs"):
        assert part in text
