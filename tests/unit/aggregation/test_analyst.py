import json

from support.judged_runs import passing, plan, run

from service.aggregation.analyst import accepted_notes, digest, merge_request, merged, notes_request
from service.aggregation.benchmark import Aggregates, aggregate
from service.aggregation.feedback import Group


def batch() -> Aggregates:
    return aggregate(
        [
            run(case, arm, number, passing(passed, 8), tokens=1200 * number)
            for case in range(4)
            for arm, passed in (("with_skill", 7), ("without_skill", 2 + case))
            for number in (1, 2)
        ],
        plan(),
    )


def test_a_note_may_cite_what_the_benchmark_says_and_nothing_else() -> None:
    found = batch()
    answer = json.dumps(
        {
            "notes": [
                "with_skill passes 87.5 % of its statements in every case.",
                "without_skill improves from case 0 to case 3.",
                "with_skill is 31.7 % better than any other skill.",
                "x" * 500,
                7,
            ]
        }
    )
    accepted, refused = accepted_notes(answer, found)
    assert accepted == [
        "with_skill passes 87.5 % of its statements in every case.",
        "without_skill improves from case 0 to case 3.",
    ]
    assert [text[:22] for text in refused] == ["with_skill is 31.7 % b", "x" * 22]


def test_a_note_that_quotes_a_case_or_item_nobody_knows_is_refused() -> None:
    true = [
        "with_skill passes 'statement 3' in every run; without_skill doesn't.",
        "The judges' verdict on \"case 0\" is with_skill's best.",
        "without_skill never passes `statement 8`, at \u201c12.5 %\u201d or less.",
    ]
    invented = [
        "with_skill fails 'statement about dates' in every run.",
        'The case "Invoice 3" is lost by with_skill.',
        "without_skill is slow on \u201cOcean\u201d.",
    ]
    accepted, refused = accepted_notes(json.dumps({"notes": [*true, *invented]}), batch())
    assert (accepted, refused) == (true, invented)


def test_an_answer_that_is_no_answer_adds_nothing() -> None:
    for answer in ("", "not json", "[]", '{"notes": null}', '{"other": 1}'):
        assert accepted_notes(answer, batch()) == ([], [])


def test_the_analyst_sees_no_runs_and_must_answer_in_a_schema() -> None:
    request = notes_request(batch(), "some-model")
    text = json.dumps(request)
    assert "statement 1" not in text or "evidence for" not in text
    assert request["model"] == "some-model"
    assert "json_schema" in text


GROUPS = [
    Group("S1", "the regex is loose", {(1, "with_skill"): 0b0110}),
    Group("S1", "regex matches too much", {(1, "with_skill"): 0b1100}),
    Group(None, "nobody checks dates", {(2, "with_skill"): 0b0010}),
]


def test_merged_groups_count_every_run_once_and_carry_an_action() -> None:
    answer = json.dumps(
        {"groups": [{"ids": [2], "action": "Add a date check"}, {"ids": [0, 1], "action": "Anchor it"}]}
    )
    found = merged(answer, GROUPS)
    assert found is not None
    assert [(group.frequency, group.action) for group in found] == [(3, "Anchor it"), (1, "Add a date check")]
    assert found[0].reason == "the regex is loose"


def test_a_lost_repeated_or_invented_group_refuses_the_whole_answer() -> None:
    for ids in ([[0, 1]], [[0, 1], [1, 2]], [[0, 1], [2, 3]], []):
        assert merged(json.dumps({"groups": [{"ids": i, "action": "a"} for i in ids]}), GROUPS) is None
    assert merged("nonsense", GROUPS) is None
    assert '"id\\": 2' in json.dumps(merge_request(GROUPS, "m"))


def test_the_analyst_sees_the_cases_that_differ_most_and_no_more() -> None:
    records = [
        run(case, arm, 1, passing(case % 3 if arm == "with_skill" else 0, 2 + case % 3))
        for case in range(200)
        for arm in ("with_skill", "without_skill")
    ]
    found = aggregate(records, plan())
    statistics = digest(found)["statistics"]
    assert isinstance(statistics, dict) and isinstance(statistics["cases"], list)
    assert len(statistics["cases"]) == 50
    assert {case["delta"] for case in statistics["cases"] if isinstance(case, dict)} == {0.5}
    assert len(found.statistics.effects) == 200
