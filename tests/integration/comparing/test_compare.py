"""A comparison from submit to files, with a real database, real HTTP and a simulated judge."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select, update

import simulator
from schemas.states import ComparisonState
from service.bootstrap import Parts
from service.comparisons import Wanted
from service.errors import BadInput, Conflict, NotFound
from service.storage.comparisons import ComparisonRow
from service.storage.tables import batches, comparisons, model_calls

Both = tuple[str, str]
# 2 cases x 2 orders, and one analysis: the second runs have the same results, so they are not asked about again.
CALLS = 5


def submit(parts: Parts, both: Both, **more: Any) -> str:
    return parts.comparisons.submit(Wanted(both[0], both[1], **more), "default").id


def document(parts: Parts, comparison_id: str, name: str) -> Any:
    return json.loads(parts.comparisons.file(comparison_id, "default", name))


def look(parts: Parts, comparison_id: str) -> ComparisonRow:
    return parts.comparisons.one(comparison_id, "default")


def test_a_comparison_says_who_won_how_sure_and_why(parts: Parts, both: Both) -> None:
    comparison_id = submit(parts, both)

    parts.compare(comparison_id)

    row = look(parts, comparison_id)
    assert (row.state, row.result, row.error) == (ComparisonState.FINISHED, "won", None)
    assert set(row.files or {}) == {"summary.json", "analysis.json", "comparison-1.json", "comparison-2.json"}
    summary = document(parts, comparison_id, "summary.json")
    assert (summary["pairs"]["compared"], summary["cases"]["won"], summary["simulated"]) == (4, 2, True)
    assert summary["win_rate"]["mean"] == 1.0
    assert summary["bias"]["order_consistency"] == 1.0 and summary["bias"]["first_position_rate"] == 0.5
    one = document(parts, comparison_id, "comparison-1.json")
    assert (row.assignment or {})["comparison-1.json"][one["winner"]] == "challenger"
    assert one["rubric"]["A"]["overall_score"] != one["rubric"]["B"]["overall_score"]
    analysis = document(parts, comparison_id, "analysis.json")
    assert analysis["comparison_summary"]["winner_skill"].startswith("tiny v1")
    assert analysis["simulated"] is True


def test_every_call_is_in_the_ledger_under_its_purpose(parts: Parts, both: Both) -> None:
    comparison_id = submit(parts, both)
    parts.compare(comparison_id)

    query = select(model_calls.c.purpose, func.count()).where(model_calls.c.batch_id == comparison_id)
    with parts.store.engine.begin() as connection:
        found = {row[0]: row[1] for row in connection.execute(query.group_by(model_calls.c.purpose))}

    assert found == {"compare": CALLS - 1, "analyze": 1}


def test_a_message_that_comes_twice_changes_nothing(parts: Parts, both: Both, model: simulator.Simulator) -> None:
    comparison_id = submit(parts, both)
    parts.compare(comparison_id)
    before = (look(parts, comparison_id), model.stats()["answered"])

    parts.compare(comparison_id)

    assert (look(parts, comparison_id), model.stats()["answered"]) == before


def test_a_worker_that_dies_between_two_answers_makes_nobody_pay_twice(
    parts: Parts, both: Both, model: simulator.Simulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    comparison_id = submit(parts, both)
    answers = parts.compare._answers
    kept: list[str] = []

    class Dies(BaseException):
        """What a killed process looks like from inside: nothing is caught, nothing is saved."""

    def put_and_die(self: Any, answer_id: str, *rest: Any) -> None:
        type(answers).put(answers, answer_id, *rest)
        kept.append(answer_id)
        if len(kept) >= 3:
            raise Dies

    class Dying:
        get = staticmethod(answers.get)
        put = put_and_die

    monkeypatch.setattr(parts.compare, "_answers", Dying())
    with pytest.raises(Dies):
        parts.compare(comparison_id)
    monkeypatch.setattr(parts.compare, "_answers", answers)
    assert look(parts, comparison_id).state is ComparisonState.RUNNING
    assert model.stats()["answered"] < CALLS
    expire(parts, comparison_id)

    assert [message.id for message in parts.store.comparisons.idle(1_000.0)] == [comparison_id]
    parts.compare(comparison_id)

    assert look(parts, comparison_id).state is ComparisonState.FINISHED
    assert model.stats()["answered"] == CALLS


def expire(parts: Parts, comparison_id: str) -> None:
    with parts.store.engine.begin() as connection:
        mine = update(comparisons).where(comparisons.c.id == comparison_id)
        connection.execute(mine.values(lease_until=1.0, not_before=None))


def test_the_same_comparison_once_more_costs_nothing(parts: Parts, both: Both, model: simulator.Simulator) -> None:
    first = submit(parts, both)
    parts.compare(first)
    paid = model.stats()["answered"]
    second = submit(parts, both)
    parts.compare(second)

    assert look(parts, second).result == look(parts, first).result
    # The draw of who is A differs, so that another comparison may be cited; both orders were asked before.
    assert model.stats()["answered"] <= paid + 1


def test_an_unusable_answer_is_repaired_once_and_then_the_pair_is_incomplete(
    parts: Parts, both: Both, model: simulator.Simulator
) -> None:
    model.add_faults({"kind": "malformed", "match": {"kind": "judge", "prompt": "> case 1"}})
    comparison_id = submit(parts, both)

    parts.compare(comparison_id)

    assert look(parts, comparison_id).state is ComparisonState.FINISHED
    summary = document(parts, comparison_id, "summary.json")
    assert (summary["pairs"]["incomplete"], summary["pairs"]["compared"]) == (2, 2)
    assert "unusable after one repair" in summary["incomplete_pairs"][0]["reason"]
    assert summary["cases"]["compared"] == 1


def test_a_model_that_does_not_answer_ends_in_a_sentence(make: Callable[..., Parts], parts: Parts, both: Both) -> None:
    away = make(ANTHROPIC_BASE_URL="http://127.0.0.1:9", max_attempts=2)
    comparison_id = submit(away, both)

    for _ in range(3):
        away.compare(comparison_id)
        expire_pause(away, comparison_id)

    row = look(away, comparison_id)
    assert row.state is ComparisonState.FAILED
    assert row.error is not None and "given up after 2 attempts" in row.error


def expire_pause(parts: Parts, comparison_id: str) -> None:
    with parts.store.engine.begin() as connection:
        connection.execute(update(comparisons).where(comparisons.c.id == comparison_id).values(not_before=None))


def test_a_comparison_without_money_fails_and_says_so(parts: Parts, both: Both) -> None:
    comparison_id = submit(parts, both, max_tokens=10)

    parts.compare(comparison_id)

    row = look(parts, comparison_id)
    assert row.state is ComparisonState.FAILED and "over budget" in str(row.error)


def test_versions_are_compared_by_their_newest_batches_on_the_same_suite(parts: Parts, both: Both) -> None:
    row = parts.comparisons.submit(Wanted("v0", "v1", skill="tiny"), "default")

    assert (row.champion.batch_id, row.challenger.batch_id) == both
    assert row.settings["judge_model"] == "simulated-judge"


@pytest.mark.parametrize(
    ("wanted", "error", "words"),
    [
        (Wanted("v0", "v7", skill="tiny"), NotFound, "it has v0, v1"),
        (Wanted("v1", "v1", skill="tiny"), BadInput, "name two versions"),
        (Wanted("v0", "v1", skill="other"), NotFound, "no skill 'other'"),
        (Wanted("0" * 26, "1" * 26), NotFound, "no batch"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is(
    parts: Parts, both: Both, wanted: Wanted, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        parts.comparisons.submit(wanted, "default")


def test_one_side_twice_an_unknown_arm_and_an_unfinished_batch_are_refused(parts: Parts, both: Both) -> None:
    with pytest.raises(BadInput, match="both sides are the same"):
        submit(parts, (both[0], both[0]))
    with pytest.raises(BadInput, match="it has with_skill"):
        submit(parts, (both[0], f"{both[1]}:without_skill"))
    with parts.store.engine.begin() as connection:
        connection.execute(update(batches).where(batches.c.id == both[0]).values(state="running"))
    with pytest.raises(Conflict, match="compare it when it is finished"):
        submit(parts, both)


def test_a_judge_does_not_compare_its_own_work(parts: Parts, both: Both) -> None:
    batch = parts.store.batches.one(both[0])
    assert batch is not None
    mine = {**batch.settings, "executor_model": {"value": "m", "source": "submit"}}
    with parts.store.engine.begin() as connection:
        connection.execute(update(batches).where(batches.c.id == both[0]).values(settings=mine))

    with pytest.raises(BadInput, match="judge its own work"):
        submit(parts, both, judge_model="m")


def test_the_other_team_finds_nothing(parts: Parts, both: Both) -> None:
    comparison_id = submit(parts, both)

    with pytest.raises(NotFound):
        parts.comparisons.one(comparison_id, "theirs")
    with pytest.raises(NotFound):
        parts.comparisons.submit(Wanted(*both), "theirs")


def test_no_question_names_an_arm(
    parts: Parts, both: Both, model: simulator.Simulator, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked: list[str] = []
    complete = type(parts.models).complete

    def listening(self: Any, call: Any) -> Any:
        asked.append(json.dumps([call.params, call.label]) if call.purpose == "compare" else "")
        return complete(self, call)

    monkeypatch.setattr(type(parts.models), "complete", listening)
    parts.compare(submit(parts, both))

    questions = [text for text in asked if text]
    assert len(questions) == CALLS - 1
    for telling in ("with_skill", "tiny", "v1", "v0", "challenger", "champion", *both):
        assert not any(telling in text for text in questions), telling
