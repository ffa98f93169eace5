"""The arithmetic of the benches: what a kill cost, and where figures are kept."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2
import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture(autouse=True)
def bench_path(monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in (BENCH, BENCH / "peers"):
        monkeypatch.syspath_prepend(str(folder))


def counted(calls: int, answered: int, executor: int, judge: int) -> dict[str, object]:
    models = {"simulated": executor, "simulated-judge": judge}
    return {"by_path": {"/v1/messages": calls}, "answered": answered, "by_model": models}


def test_calls_that_were_open_at_the_kill_are_not_repeated_work() -> None:
    from measuring import reuse

    before = counted(calls=120, answered=100, executor=70, judge=50)
    after = counted(calls=220, answered=220, executor=120, judge=100)

    told = reuse(100, before, before, after)

    assert told == {"calls_after_the_kill": 100, "finished_calls_repeated": 0, "share_reused": 1.0}


def test_an_answer_that_was_asked_for_again_is_counted() -> None:
    from measuring import reuse

    before = counted(calls=120, answered=100, executor=70, judge=50)
    after = counted(calls=245, answered=245, executor=140, judge=105)

    told = reuse(100, before, before, after)

    assert told["finished_calls_repeated"] == 25
    assert told["share_reused"] == 0.75


def test_saved_work_that_is_done_again_is_told_by_stage() -> None:
    from measuring import lost

    made = counted(calls=120, answered=100, executor=70, judge=50)
    after = counted(calls=222, answered=222, executor=107, judge=112)

    told = lost(100, {"executions": 65, "settled": 40}, made, after)

    assert told["saved_executions_repeated"] == 2
    assert told["saved_judgements_repeated"] == 2


def test_the_ideal_time_takes_the_middle_of_a_spread() -> None:
    from work import Work

    assert Work(cases=400, latency="0.5,1.5", concurrency=100).ideal_seconds == 8.0
    assert Work(cases=400, latency="0", concurrency=100).ideal_seconds == 0.0


def test_figures_are_kept_with_date_and_machine_and_read_again(tmp_path: Path) -> None:
    from results import load, save

    assert load("tiny", tmp_path) is None
    save("tiny", {"rate": 7}, tmp_path)

    told = load("tiny", tmp_path)
    assert told is not None and told["rate"] == 7
    assert told["machine"]["cores"] and told["date"].endswith("Z")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["tiny.json"]


def test_a_stream_that_ends_before_the_bench_is_an_error() -> None:
    from api_load import Load

    async def watched() -> Any:
        load = Load("http://api.example", 60.0, "assay_token")
        shown: list[str] = []

        def answer(request: httpx2.Request) -> httpx2.Response:
            shown.append(request.headers["authorization"])
            return httpx2.Response(200, text="retry: 1000\n\n")

        load.client = httpx2.AsyncClient(
            base_url="http://api.example", headers=load.client.headers, transport=httpx2.MockTransport(answer)
        )
        await load.watch("batch")
        return load.early_ends, load.errors, shown

    assert asyncio.run(watched()) == (1, ["a stream ended early"], ["Bearer assay_token"])
