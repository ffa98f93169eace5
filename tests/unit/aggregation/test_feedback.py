import random
from collections.abc import Iterable

import pytest
from support.judged_runs import plan, run

from schemas.grading import EvalFeedback, Grading, Suggestion
from service.aggregation.benchmark import aggregate
from service.aggregation.feedback import MOST_GROUPS, assertion_id
from service.aggregation.records import RunRecord


def said(case: int, number: int, *suggestions: tuple[str | None, str], text: str | None = None) -> RunRecord:
    given = tuple(Suggestion(assertion=assertion, reason=reason) for assertion, reason in suggestions)
    feedback = EvalFeedback(suggestions=given, text=text)
    return run(case, "with_skill", number, Grading(eval_feedback=feedback))


def groups(records: Iterable[RunRecord]) -> list[dict[str, object]]:
    found = aggregate(records, plan()).feedback["suggestions"]
    assert isinstance(found, list)
    return [entry for entry in found if isinstance(entry, dict)]


def test_the_same_remark_in_other_words_is_one_group_with_its_runs() -> None:
    found = groups(
        [
            said(1, 1, ("S7: Uses fixture factory pattern", "Checks the pattern name but not semantic correctness")),
            said(1, 2, ("S7", "checks pattern name, but not its semantic correctness")),
            said(2, 1, ("S7 - Uses fixture factory", "Checks the pattern name but not semantic correctness.")),
            said(2, 2, (None, "No assertion checks that domain services are real")),
        ]
    )
    assert [entry["frequency"] for entry in found] == [3, 1]
    assert found[0]["assertion"] == "S7"
    assert found[0]["reason"] == "Checks the pattern name but not semantic correctness"
    assert found[0]["runs"] == [
        {"eval_id": 1, "configuration": "with_skill", "run_numbers": [1, 2]},
        {"eval_id": 2, "configuration": "with_skill", "run_numbers": [1]},
    ]
    assert found[1]["assertion"] is None


def test_different_remarks_about_one_assertion_stay_apart() -> None:
    found = groups([said(1, 1, ("S1", "The regex is too loose")), said(1, 2, ("S1", "Nobody tests an empty file"))])
    assert len(found) == 2


def test_a_run_that_repeats_itself_counts_once() -> None:
    found = groups([said(1, 1, (None, "Add a check for dates"), (None, "add a check for dates!"))])
    assert [entry["frequency"] for entry in found] == [1]


def test_the_one_text_of_the_cases_dialect_is_a_suggestion_and_empty_is_none() -> None:
    found = groups([said(1, 1, text="The token criterion is vague"), said(1, 2, text=""), said(1, 3, text="  ")])
    assert [entry["reason"] for entry in found] == ["The token criterion is vague"]


def test_the_most_frequent_comes_first_and_all_runs_are_counted() -> None:
    aggregates = aggregate(
        [said(1, 1, (None, "rare")), said(1, 2, (None, "common")), said(1, 3, (None, "common"))], plan()
    )
    found = aggregates.feedback
    assert found["total_runs"] == 3
    assert [
        entry["reason"] for entry in groups([said(1, n, (None, "common" if n > 1 else "rare")) for n in (1, 2, 3)])
    ] == [
        "common",
        "rare",
    ]


def test_an_assertion_quoted_a_little_differently_is_the_same_one() -> None:
    remark = "Any file would pass this"
    found = groups(
        [
            said(1, 1, ("The output is a valid CSV file with a header", remark)),
            said(1, 2, ("the output is a valid csv file, with header", remark)),
            said(1, 3, ("The log is empty", remark)),
        ]
    )
    assert [entry["frequency"] for entry in found] == [2, 1]


def test_groups_stop_at_a_cap_and_the_rest_is_counted() -> None:
    draw = random.Random(1)
    texts = ["".join(draw.choices("abcdefghijklmnopqrstuvwxyz", k=30)) for _ in range(MOST_GROUPS + 20)]
    found = aggregate([said(1, n, (None, text)) for n, text in enumerate([*texts, texts[0]], 1)], plan()).feedback
    assert isinstance(found["suggestions"], list)
    assert len(found["suggestions"]) == MOST_GROUPS
    assert found["unlisted_suggestions"] == 20
    assert found["suggestions"][0]["frequency"] == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [("S7: Uses x", "S7"), ("[Q1] tone", "Q1"), ("S12", "S12"), ("Uses fixtures", "Uses fixtures"), (None, None)],
)
def test_an_assertion_is_known_by_its_id(text: str | None, expected: str | None) -> None:
    assert assertion_id(text) == expected
