"""All votes together: the summary, the case's own file, and the analysis in both forms."""

import json
from pathlib import Path
from typing import Any

import jsonschema
from support.comparing import CASE, CASES_CASE, asked, cases_answer, creator_answer, result

from schemas.dialects import Dialect, write
from schemas.states import Outcome, Role, Stage
from schemas.suite import Case
from service.comparing.analysis import Known, Unblinded, analysis_question
from service.comparing.blind import blind_question
from service.comparing.contest import Decided, Vote, decide, orders, sentence, summary_document
from service.comparing.sides import CHALLENGER, CHAMPION, Pair, Pairing
from service.storage.rows import RunRow

ROOT = Path(__file__).parents[3]
ABOUT: dict[str, Any] = {"challenger": {"label": "pdf v1"}, "champion": {"label": "pdf v0"}}


def pair(position: int = 0, number: int = 1, case: Case = CASE) -> Pair:
    return Pair(position, case.model_copy(update={"id": position + 1}), number, {CHALLENGER: 1, CHAMPION: 2})


def votes(one: Pair, *winners: str | None, form: Dialect = Dialect.SKILL_CREATOR) -> list[Vote]:
    """The two votes of a pair: the side chosen each time; None is a tie, "" is no answer."""
    found = []
    for order, winner in zip(orders("seed", one), winners, strict=True):
        label = next((label for label, side in order.labels.items() if side == winner), "TIE")
        answer = cases_answer(label) if form is Dialect.CASES else creator_answer(label)
        case = CASES_CASE if form is Dialect.CASES else one.case
        comparison = blind_question(asked(result("a"), result("b"), case, form)).read(answer)
        lengths = {CHALLENGER: 10, CHAMPION: 20}
        found.append(Vote(order, None, lengths, "malformed: no") if winner == "" else Vote(order, comparison, lengths))
    return found


def decided(*given: list[Vote]) -> Decided:
    return decide([vote for both in given for vote in both], len(given), [], True, ABOUT)


def test_the_summary_counts_pairs_cases_and_what_is_missing() -> None:
    found = decided(
        votes(pair(0), CHALLENGER, CHALLENGER),
        votes(pair(1), CHALLENGER, CHALLENGER),
        votes(pair(2), CHALLENGER, CHAMPION),
        votes(pair(3), CHAMPION, ""),
    )
    document: Any = summary_document(found, {"made": False})

    assert document["result"] == "won"
    assert document["sentence"] == "pdf v1 wins against pdf v0: 2 won, 0 lost, 1 tied of 3 cases."
    expected = {"planned": 4, "compared": 3, "incomplete": 1, "excluded": 0, "won": 2, "lost": 0, "tied": 1}
    assert document["pairs"] == {**expected, "rate": 0.8333}
    assert document["win_rate"]["cases"] == 3 and document["win_rate"]["mean"] == 0.8333
    assert document["win_rate"]["ci_high"] == 1.0
    assert document["bias"]["order_consistency"] == 0.6667
    assert document["incomplete_pairs"] == [{"eval_id": 4, "run_number": 1, "reason": "malformed: no"}]
    assert [one["file"] for one in document["case_results"]] == [f"comparison-{n}.json" for n in (1, 2, 3)]
    assert document["simulated"] is True


def test_a_case_file_names_the_winner_by_the_label_it_had() -> None:
    found = decided(votes(pair(0), CHALLENGER, CHALLENGER), votes(pair(1), CHAMPION, CHAMPION))

    for one in found.cases:
        assert found.assignment()[one.file][str(one.comparison.winner)] == one.winner


def test_a_judge_that_prefers_the_first_gives_ties_that_say_so() -> None:
    found = decided(votes(pair(0), CHALLENGER, CHAMPION))

    (one,) = found.cases
    assert (one.winner, one.comparison.winner, found.result) == (None, "TIE", "tie")
    assert "order was swapped" in str(one.comparison.reasoning)


def test_nothing_compared_is_no_tie() -> None:
    found = decided(votes(pair(0), "", ""))

    assert (found.result, found.winner) == (None, None)
    assert "nothing can be said" in sentence(found)


def run(number: int, outcome: Outcome | None, error: str | None = None) -> RunRow:
    arm = ("with_skill", Role.TREATMENT, number, None, Stage.SETTLED, Stage.JUDGE)
    return RunRow(number, "b", number, 0, "1", *arm, outcome, error, 1, None, None, None, None)


def test_failed_runs_are_left_out_and_counted_and_unmatched_numbers_are_no_pairs() -> None:
    found = Pairing()
    mine = [run(1, Outcome.SCORED), run(2, Outcome.TIMEOUT, "600 s were over"), run(3, Outcome.GATED)]
    theirs = [run(1, Outcome.JUDGE_ERROR), run(2, Outcome.SCORED)]

    found.add(0, CASE, {CHALLENGER: mine, CHAMPION: theirs})

    assert [one.run_number for one in found.pairs] == [1]
    (left_out,) = found.excluded
    assert (left_out.run_number, left_out.side) == (2, CHALLENGER)
    assert left_out.reason == "timeout: 600 s were over"


def unblinded(form: Dialect) -> Unblinded:
    found = decided(votes(pair(0), CHAMPION, CHAMPION), votes(pair(1), CHALLENGER, CHALLENGER, form=form))
    winner = Known("pdf v1", "v1", {"SKILL.md": "# Steps\n1. Validate"}, {1: "read, wrote"})
    return Unblinded(winner, Known("pdf v0", "v0", {}, {}), CHALLENGER, found.cases, form, "some-judge")


def sample(dialect: str) -> Any:
    return json.loads((ROOT / "tests" / "fixtures" / "samples" / dialect / "analysis.json").read_text())


def validated(document: Any, dialect: str) -> Any:
    jsonschema.validate(document, json.loads((ROOT / "schemas/json" / dialect / "analysis.schema.json").read_text()))
    return document


def test_the_skill_creator_analysis_has_the_samples_form() -> None:
    wanted = sample("skill_creator")
    known = unblinded(Dialect.SKILL_CREATOR)
    answer = {
        "strengths": wanted["winner_strengths"],
        "weaknesses": wanted["loser_weaknesses"],
        "instruction_following": wanted["instruction_following"],
        "suggestions": wanted["improvement_suggestions"],
        "transcript_insights": wanted["transcript_insights"],
    }

    document = write(analysis_question(known).read(json.dumps(answer)), Dialect.SKILL_CREATOR)

    found = validated(document, "skill_creator")
    assert {**found, "comparison_summary": None} == {**wanted, "comparison_summary": None}
    assert list(found) == list(wanted)
    told = found["comparison_summary"]
    assert (told["winner_skill"], told["loser_skill"]) == ("pdf v1", "pdf v0")
    assert told["winner"] == known.telling.winning_label


def test_the_cases_analysis_is_that_of_the_sample() -> None:
    wanted = sample("cases")
    answer = {name: wanted[name] for name in ("strengths", "weaknesses", "suggestions")}

    document = write(analysis_question(unblinded(Dialect.CASES)).read(json.dumps(answer)), Dialect.CASES)

    assert validated(document, "cases") == wanted


def test_the_analysis_is_told_who_is_who_and_sees_both_skills_fenced() -> None:
    text = json.dumps(analysis_question(unblinded(Dialect.SKILL_CREATOR)).params)

    assert "The winner is pdf v1, the loser is pdf v0." in text
    assert "skill of the winner: file" in text
    assert "The loser worked without a skill." in text
