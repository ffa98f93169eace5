"""Judging one run: what comes out, and how unusable answers end."""

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from support.judging import SKILL, ScriptedJudge, answer_to, true_controls

from schemas.dialects import read, write
from schemas.grading import Grading
from schemas.kinds import Dialect
from schemas.states import Outcome
from service.errors import Unavailable
from service.judging.judge import judge
from service.judging.judgement import FirstAnswer, InLane, JudgeFailed, SlotJudgement
from service.judging.material import JudgeMaterial, output_file
from service.judging.request import JudgeRequest
from service.judging.settings import JudgeSettings
from service.limits.port import RetryLater

SCHEMAS = Path(__file__).parents[3] / "schemas" / "json" / "cases"
ONE = JudgeSettings(models=("judge-a",), rejudge_share=0.0)


class Shelf:
    """Keeps judgements in a dict."""

    def __init__(self) -> None:
        self.kept: dict[str, SlotJudgement] = {}
        self.firsts: dict[str, FirstAnswer] = {}

    def get(self, judgement_id: str) -> SlotJudgement | FirstAnswer | None:
        return self.kept.get(judgement_id) or self.firsts.get(judgement_id)

    def put_first(self, first: FirstAnswer) -> None:
        self.firsts[first.id] = first

    def put(self, judgement: SlotJudgement) -> None:
        self.kept.setdefault(judgement.id, judgement)


def expectations(grading: Grading) -> list[tuple[str, bool | None]]:
    return [(one.text, one.passed) for one in grading.expectations or ()]


def test_statements_come_back_with_their_own_texts_and_the_controls_do_not(statement_run: JudgeMaterial) -> None:
    graded = judge(statement_run, ONE, ScriptedJudge()).grading

    assert expectations(graded) == [("The output names John Smith", True), ("The sheet has a SUM formula", True)]
    assert graded.summary is not None
    assert (graded.summary.passed, graded.summary.total, graded.summary.pass_rate) == (2, 2, 1.0)


def test_metrics_and_timing_are_copied_and_the_graders_time_is_beside_them(statement_run: JudgeMaterial) -> None:
    graded = judge(statement_run, ONE, ScriptedJudge()).grading

    assert graded.execution_metrics == statement_run.metrics
    assert graded.timing is not None
    assert (graded.timing.total_duration_seconds, graded.timing.grader_duration_seconds) == (13.0, 0.5)


def test_the_rubric_is_summed_up_with_the_suites_weights(rubric_run: JudgeMaterial) -> None:
    def scores(request: JudgeRequest) -> dict[str, Any]:
        answer = answer_to(request)
        answer["dimensions"][0]["score"], answer["dimensions"][1]["score"] = 5, 2
        return answer

    graded = judge(rubric_run, ONE, ScriptedJudge(scores)).grading

    assert graded.rubric_summary is not None
    assert graded.rubric_summary.weighted_mean == 4.0  # (5 * 2 + 2 * 1) / 3
    assert graded.rubric_summary.normalized == 0.8


def test_what_code_decided_is_listed_as_given_and_counted(rubric_run: JudgeMaterial) -> None:
    graded = judge(rubric_run, ONE, ScriptedJudge()).grading

    assert expectations(graded) == [("Test file created", True), ("No mocks", False)]
    assert graded.summary is not None
    assert graded.summary.pass_rate == 0.5


def test_criteria_pass_at_three_and_only_required_ones_decide(criteria_run: JudgeMaterial) -> None:
    def scores(request: JudgeRequest) -> dict[str, Any]:
        answer = answer_to(request)
        answer["criteria"][0]["score"], answer["criteria"][1]["score"] = 3, 2
        return answer

    graded = judge(criteria_run, ONE, ScriptedJudge(scores)).grading

    assert [(r.criterion, r.score, r.passed) for r in graded.results or ()] == [
        ("frontmatter", 3, True),
        ("token-efficiency", 2, False),
    ]
    assert (graded.overall_score, graded.required_score, graded.overall) == (2.5, 3.0, "pass")
    assert (graded.case_id, graded.version, graded.run) == ("case-01", 0, 2)


def test_a_failed_required_criterion_fails_the_case(criteria_run: JudgeMaterial) -> None:
    graded = judge(criteria_run, ONE, ScriptedJudge(lambda request: answer_to(request, score=2))).grading

    assert graded.overall == "fail"


def test_code_decides_front_matter_and_length_whatever_the_judge_says(criteria_run: JudgeMaterial) -> None:
    graded = judge(criteria_run, ONE, ScriptedJudge()).grading

    assert graded.conventions is not None
    assert list(graded.conventions) == [
        "frontmatter",
        "description_field",
        "token_efficiency",
        "progressive_disclosure",
        "type_alignment",
    ]
    assert graded.conventions["frontmatter"].passed is True
    assert graded.conventions["token_efficiency"].details == "5 words, under 500 target"


def test_a_run_that_wrote_no_skill_has_no_conventions_to_keep(criteria_run: JudgeMaterial) -> None:
    bare = JudgeMaterial(criteria_run.case, Dialect.CASES, (output_file("notes.md", b"hello"),))

    conventions = judge(bare, ONE, ScriptedJudge()).grading.conventions

    assert conventions is not None
    assert {(check.passed, check.details) for check in conventions.values()} == {(None, "N/A - behavioral run")}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"# No front matter", "No front matter"),
        (b"---\nname: a\n---\nbody", "description is missing"),
        (b"---\nname: Not Kebab\ndescription: d\n---\n", "lower-case"),
        (b"---\nname: a\n\tdescription: d\n---\n", "Not readable"),
        (b"---\nname: a\ndescription: " + b"d" * 1025 + b"\n---\n", "1025 characters"),
    ],
)
def test_front_matter_that_cannot_be_used_is_told_why(criteria_run: JudgeMaterial, text: bytes, problem: str) -> None:
    broken = JudgeMaterial(criteria_run.case, Dialect.CASES, (output_file("SKILL.md", text),))

    conventions = judge(broken, ONE, ScriptedJudge()).grading.conventions

    assert conventions is not None
    assert conventions["frontmatter"].passed is False
    assert problem in str(conventions["frontmatter"].details)


def test_folded_descriptions_are_read(criteria_run: JudgeMaterial) -> None:
    folded = SKILL.replace(b"description: Use", b"description: >-\n  Use")
    material = JudgeMaterial(criteria_run.case, Dialect.CASES, (output_file("SKILL.md", folded),))

    conventions = judge(material, ONE, ScriptedJudge()).grading.conventions

    assert conventions is not None
    assert conventions["frontmatter"].passed is True


def dropped(request: JudgeRequest) -> dict[str, Any]:
    answer = answer_to(request)
    del answer["statements"][0]
    return answer


def doubled(request: JudgeRequest) -> dict[str, Any]:
    answer = answer_to(request)
    answer["statements"].append(answer["statements"][0])
    return answer


def out_of_range(request: JudgeRequest) -> dict[str, Any]:
    return answer_to(request, score=7)


def extra_field(request: JudgeRequest) -> dict[str, Any]:
    return {**answer_to(request), "weighted_mean": 5.0}


def doubled_key(request: JudgeRequest) -> str:
    text = json.dumps(answer_to(request))
    return text[:-1] + ', "claims": []}'


UNUSABLE = [
    (dropped, "ids", "E1 is missing"),
    (doubled, "ids", "comes 2 times"),
    (out_of_range, "malformed", "dimensions.0.score"),
    (extra_field, "malformed", "weighted_mean"),
    (doubled_key, "malformed", "twice in one object"),
    (lambda _: '{"statements": [', "malformed", "no JSON"),
    (lambda _: "I would give full marks.", "malformed", "no JSON"),
    (lambda _: "[" * 100_000, "malformed", "no JSON"),
    (lambda _: "x" * 1_000_001, "malformed", "characters"),
]


@pytest.mark.parametrize(("maker", "reason", "words"), UNUSABLE)
def test_an_unusable_answer_gets_one_repair_and_then_is_a_judge_error(
    rubric_run: JudgeMaterial, maker: Any, reason: str, words: str
) -> None:
    asked = ScriptedJudge(maker)

    with pytest.raises(JudgeFailed) as failed:
        judge(rubric_run, ONE, asked)

    assert (failed.value.outcome, failed.value.reason) == (Outcome.JUDGE_ERROR, reason)
    assert len(asked.asked) == 2
    assert words in str(asked.asked[1].messages[-1]["content"])


@pytest.mark.parametrize(("maker", "reason", "words"), UNUSABLE)
def test_a_repaired_answer_counts_and_both_calls_are_paid(
    rubric_run: JudgeMaterial, maker: Any, reason: str, words: str
) -> None:
    judgement = judge(rubric_run, ONE, ScriptedJudge(maker, answer_to))

    assert judgement.slots[0].calls == 2
    assert judgement.tokens.total == 240
    assert judgement.grading.rubric_scores is not None


def test_a_truncated_answer_is_asked_again_with_more_room(statement_run: JudgeMaterial) -> None:
    asked = ScriptedJudge(stop_reason="max_tokens")

    with pytest.raises(JudgeFailed, match="truncated"):
        judge(statement_run, ONE, asked)

    assert asked.asked[1].max_tokens == 2 * asked.asked[0].max_tokens


@pytest.mark.parametrize(
    ("stop_reason", "reason"), [("refusal", "refusal"), ("model_context_window_exceeded", "too_long")]
)
def test_a_judge_that_declines_is_not_asked_again(statement_run: JudgeMaterial, stop_reason: str, reason: str) -> None:
    asked = ScriptedJudge(stop_reason=stop_reason)

    with pytest.raises(JudgeFailed) as failed:
        judge(statement_run, ONE, asked)

    assert failed.value.reason == reason
    assert len(asked.asked) == 1


def everything(passed: bool) -> Any:
    def maker(request: JudgeRequest) -> dict[str, Any]:
        answer = answer_to(request)
        for entry in answer["statements"]:
            entry["passed"] = passed
        return answer

    return maker


@pytest.mark.parametrize("passed", [True, False])
def test_an_answer_that_says_the_same_to_everything_is_void(statement_run: JudgeMaterial, passed: bool) -> None:
    asked = ScriptedJudge(everything(passed))

    with pytest.raises(JudgeFailed) as failed:
        judge(statement_run, ONE, asked)

    assert failed.value.reason == "control"
    assert len(asked.asked) == 1


def test_exactly_one_control_is_true_and_which_one_differs_between_runs(statement_run: JudgeMaterial) -> None:
    seen = set()
    for number in range(12):
        run = JudgeMaterial(statement_run.case, statement_run.dialect, (output_file("a", bytes([number])),))
        asked = ScriptedJudge()
        judge(run, ONE, asked)
        truth = true_controls(asked.asked[0])
        assert sorted(truth.values()) == [False, True]
        seen.add(tuple(truth.items()))

    assert len(seen) == 2


def by_model(votes: dict[str, tuple[bool, int]]) -> Any:
    return lambda request: answer_to(request, *votes[request.slot.model])


def test_a_panel_decides_by_majority_and_mean_and_keeps_what_it_disagreed_about(rubric_run: JudgeMaterial) -> None:
    settings = JudgeSettings(models=("a", "b", "c"), rejudge_share=0.0)
    votes = {"a": (True, 5), "b": (True, 4), "c": (False, 4)}

    judgement = judge(rubric_run, settings, ScriptedJudge(by_model(votes)))

    assert [d.score for d in judgement.grading.rubric_scores or ()] == [4.3333, 4.3333]
    about = judgement.grading.extra["judge"]
    assert isinstance(about, dict)
    assert about["disagreements"] == {"philosophy": [5, 4, 4], "correctness": [5, 4, 4]}
    assert about["models"] == ["a", "b", "c"]


def test_a_tie_of_the_panel_is_not_passed(statement_run: JudgeMaterial) -> None:
    settings = JudgeSettings(models=("a", "b"), rejudge_share=0.0)

    graded = judge(statement_run, settings, ScriptedJudge(by_model({"a": (True, 1), "b": (False, 1)}))).grading

    assert [one.passed for one in graded.expectations or ()] == [False, False]


def test_a_panels_mean_of_two_and_a_half_has_not_passed(criteria_run: JudgeMaterial) -> None:
    settings = JudgeSettings(models=("a", "b"), rejudge_share=0.0)

    graded = judge(criteria_run, settings, ScriptedJudge(by_model({"a": (True, 2), "b": (True, 3)}))).grading

    assert {(result.score, result.passed) for result in graded.results or ()} == {(2.5, False)}
    assert (graded.overall_score, graded.required_score, graded.overall) == (2.5, 2.5, "fail")


def test_a_panels_exact_mean_decides_and_travels_through_the_file(criteria_run: JudgeMaterial) -> None:
    settings = JudgeSettings(models=("a", "b", "c"), rejudge_share=0.0)
    votes = {"a": (True, 3), "b": (True, 3), "c": (True, 4)}

    graded = judge(criteria_run, settings, ScriptedJudge(by_model(votes))).grading

    written = json.loads(json.dumps(write(graded, Dialect.CASES)))
    jsonschema.validate(written, json.loads((SCHEMAS / "grading.schema.json").read_text()))
    assert {(result["score"], result["passed"]) for result in written["results"]} == {(3.3333, True)}
    reread = read(json.dumps(written).encode())
    assert isinstance(reread.document, Grading)
    assert reread.dialect is Dialect.CASES
    assert [result.score for result in reread.document.results or ()] == [3.3333, 3.3333]


def test_one_judges_scores_stay_whole_numbers(criteria_run: JudgeMaterial) -> None:
    graded = judge(criteria_run, JudgeSettings(models=("a",), rejudge_share=0.0), ScriptedJudge()).grading

    assert [repr(result.score) for result in graded.results or ()] == ["4", "4"]


def test_a_panel_with_a_seat_missing_is_a_judge_error_and_the_others_are_not_paid_again(
    statement_run: JudgeMaterial,
) -> None:
    settings = JudgeSettings(models=("a", "b"), rejudge_share=0.0)
    shelf = Shelf()

    def broken_b(request: JudgeRequest) -> dict[str, Any] | str:
        return answer_to(request) if request.slot.model == "a" else "no"

    with pytest.raises(JudgeFailed):
        judge(statement_run, settings, ScriptedJudge(broken_b), shelf)
    second = judge(statement_run, settings, ScriptedJudge(), shelf)

    assert [slot.model for slot in second.paid] == ["b"]


def test_the_same_run_is_never_judged_twice(statement_run: JudgeMaterial) -> None:
    shelf, asked = Shelf(), ScriptedJudge()
    first = judge(statement_run, ONE, asked, shelf)

    second = judge(statement_run, ONE, asked, shelf)

    assert len(asked.asked) == 1
    assert second.paid == ()
    assert second.grading == first.grading


def test_a_sampled_run_is_judged_once_more_under_another_key(statement_run: JudgeMaterial) -> None:
    asked = ScriptedJudge(answer_to, lambda request: answer_to(request, passed=False))

    judgement = judge(statement_run, JudgeSettings(models=("a",), rejudge_share=1.0), asked)

    assert len({request.id for request in asked.asked}) == 2
    assert [one.passed for one in judgement.rejudged[0].expectations or ()] == [False, False]


def test_a_repeated_judgement_that_fails_leaves_the_first_one_standing(statement_run: JudgeMaterial) -> None:
    asked = ScriptedJudge(answer_to, lambda _: "no")

    judgement = judge(statement_run, JudgeSettings(models=("a",), rejudge_share=1.0), asked)

    assert judgement.rejudged == ()
    assert "judge_error" in str(judgement.rejudge_failed)
    assert judgement.grading.summary is not None


@pytest.mark.parametrize("away", [Unavailable("the model is away"), RetryLater(5.0, "the model is busy")])
def test_a_repeat_that_finds_no_model_leaves_the_first_judgement_standing(
    statement_run: JudgeMaterial, away: Unavailable
) -> None:
    def unavailable(_: JudgeRequest) -> dict[str, Any]:
        raise away

    asked = ScriptedJudge(answer_to, unavailable)

    judgement = judge(statement_run, JudgeSettings(models=("a",), rejudge_share=1.0), asked)

    assert (judgement.rejudged, judgement.rejudge_failed) == ((), str(away))
    assert judgement.grading.summary is not None


def test_a_repeat_that_is_in_the_lane_is_waited_for(statement_run: JudgeMaterial) -> None:
    def travelling(_: JudgeRequest) -> dict[str, Any]:
        raise InLane(60.0, "in the lane")

    with pytest.raises(InLane):
        judge(statement_run, JudgeSettings(models=("a",), rejudge_share=1.0), ScriptedJudge(answer_to, travelling))


def test_an_answer_whose_repair_has_to_wait_is_not_paid_for_again(statement_run: JudgeMaterial) -> None:
    shelf = Shelf()

    def busy(_: JudgeRequest) -> dict[str, Any]:
        raise RetryLater(5.0, "the model is busy")

    with pytest.raises(RetryLater):
        judge(statement_run, ONE, ScriptedJudge(lambda _: "no", busy), shelf)
    again = ScriptedJudge()
    judgement = judge(statement_run, ONE, again, shelf)

    assert [len(request.messages) for request in again.asked] == [3], "only the repair is asked for"
    assert (judgement.slots[0].calls, judgement.slots[0].tokens.input) == (2, 200)


def test_what_a_panel_says_differently_of_a_convention_is_kept(criteria_run: JudgeMaterial) -> None:
    def strict(request: JudgeRequest) -> dict[str, Any]:
        answer = answer_to(request)
        answer["conventions"]["type_alignment"] = {"details": "no table", "passed": False}
        return answer

    settings = JudgeSettings(models=("a", "b", "c"), rejudge_share=0.0)

    graded = judge(criteria_run, settings, ScriptedJudge(answer_to, strict, answer_to)).grading

    about: Any = graded.extra["judge"]
    assert about["disagreements"] == {"type_alignment": [True, False, True]}
    assert graded.conventions is not None and graded.conventions["type_alignment"].passed is True
