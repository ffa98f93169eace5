import io
import json
from typing import Any

from support.judged_runs import grading, passing, plan, run

from schemas.grading import Grading
from service.aggregation.benchmark import aggregate
from service.aggregation.items import MOST_ITEMS, Flag, Item
from service.aggregation.records import RunRecord


def items_of(records: list[RunRecord]) -> dict[str, Item]:
    return {item.text: item for item in aggregate(records, plan()).items}


def four_runs(with_skill: list[Grading], without_skill: list[Grading]) -> list[RunRecord]:
    arms = (("with_skill", with_skill), ("without_skill", without_skill))
    return [run(1, arm, number, judged) for arm, gradings in arms for number, judged in enumerate(gradings, 1)]


def test_every_flag_is_raised_by_data_that_deserves_it() -> None:
    texts = ("always", "never", "hurts", "helps", "flaky", "twin")
    records = four_runs(
        [grading(True, False, False, True, odd, odd, texts=texts) for odd in (True, False, True, False)],
        [grading(True, False, True, False, odd, odd, texts=texts) for odd in (False, True, True, False)],
    )

    found = items_of(records)

    assert found["always"].flags == (Flag.NO_SIGNAL,)
    assert found["never"].flags == (Flag.NEVER_PASSES,)
    assert found["hurts"].flags == (Flag.HURTS,)
    assert found["helps"].flags == ()
    assert found["flaky"].flags == (Flag.FLAKY, Flag.REDUNDANT)
    assert found["flaky"].redundant_with == ("twin",)
    assert found["helps"].discrimination == 1.0
    assert found["helps"].p is not None and abs(found["helps"].p - 2 / 70) < 1e-12


def test_false_discoveries_are_controlled_over_all_items() -> None:
    texts = tuple(f"statement {number}" for number in range(20))
    records = four_runs(
        [grading(*([True] + [True] * 19), texts=texts)] * 4, [grading(*([False] + [True] * 19), texts=texts)] * 4
    )
    found = items_of(records)["statement 0"]
    assert found.p is not None and found.p < 0.05
    assert found.q is not None and found.q > 0.05
    assert not found.is_certain


def test_a_judge_that_changes_its_mind_is_told_from_a_flaky_agent() -> None:
    judged = grading(True, texts=("is clear",))
    again = grading(False, texts=("is clear",))
    record = run(1, "with_skill", 1, judged)
    noisy = RunRecord(
        record.case, "with_skill", record.role, 1, record.outcome, grading=judged, rejudged=(again, judged)
    )

    found = items_of([noisy])["is clear"]

    assert found.flip_rate == 0.5
    assert Flag.JUDGE_NOISE in found.flags


def test_a_dimension_is_one_item_over_all_cases() -> None:
    records = [
        run(case, arm, number, passing(1, 1, {"clarity": score}))
        for case in range(4)
        for arm, score in (("with_skill", 5), ("without_skill", 2))
        for number in (1, 2)
    ]
    found = items_of(records)["clarity"]
    assert found.discrimination == 3.0
    assert found.is_certain
    assert found.case_id is None


def test_expectations_reworded_in_every_run_cannot_fill_the_memory() -> None:
    records = [run(1, "with_skill", n, grading(True, texts=(f"words {n}",))) for n in range(MOST_ITEMS + 7)]
    aggregates = aggregate(records, plan())
    assert len(aggregates.items) == MOST_ITEMS
    assert aggregates.coverage["unlisted_items"] == 7


def test_items_are_written_with_rates_and_intervals() -> None:
    out = io.BytesIO()
    aggregate(four_runs([passing(1, 1)] * 3, [passing(0, 1)] * 3), plan()).write_benchmark(out)
    item: dict[str, Any] = json.loads(out.getvalue())["items"][0]
    assert item["arms"]["with_skill"] == {"runs": 3, "passed": 3, "rate": 1.0, "ci_low": 0.4385, "ci_high": 1.0}
    assert (item["discrimination"], item["p"], item["kind"]) == (1.0, 0.1, "statement")
