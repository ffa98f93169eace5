"""The half-price lane: nothing lost, nothing paid twice, whoever is killed when."""

import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select, update
from support.judging import numbered_run
from support.rows import add_batch

import simulator
from schemas.states import Outcome
from service.errors import BadInput, NotFound, StageFailed, Unavailable
from service.judging.ask import Asker, ask_with, judge_answer
from service.judging.judge import judge
from service.judging.judgement import InLane, JudgeAnswer, JudgeFailed, SlotJudgement
from service.judging.kept import KeptJudgements
from service.judging.lane import LaneRequest, LaneSettings
from service.judging.lane_ask import LaneAsk, uses_lane
from service.judging.lane_budget import LaneSpending
from service.judging.lane_store import LaneRows
from service.judging.request import JudgeRequest, Slot, build_request
from service.judging.settings import JudgeSettings
from service.judging.shipping import Shipping
from service.limits.budgets import Account, OverBudget, Reservation, Spend, month_account
from service.limits.memory_budgets import MemoryBudgets
from service.models import ClientSettings, ModelClient, Tokens
from service.models.lane import Lane, LaneResult, LaneState
from service.models.prices import Prices
from service.storage.engine import open_engine
from service.storage.ledger import LedgerRows
from service.storage.store import Store
from service.storage.tables import batches, lane_requests, metadata, model_calls, runs

SETTINGS = JudgeSettings(models=("simulated",), rejudge_share=0.0)
AT_ONCE = LaneSettings(max_requests=50, max_age_seconds=0.0, poll_seconds=0.0, lease_seconds=0.0)
TESTS = Path(__file__).parent


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    sqlite = f"sqlite:///{tmp_path / 'lane.db'}"
    url = sqlite if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    opened = open_engine(url)
    metadata.create_all(opened)
    yield opened
    opened.dispose()


@pytest.fixture
def model() -> Iterator[simulator.Simulator]:
    with simulator.start() as running:
        yield running


@pytest.fixture
def client(model: simulator.Simulator) -> Iterator[ModelClient]:
    opened = ModelClient(ClientSettings("test-key", model.url))
    yield opened
    opened.close()


def load(request: LaneRequest) -> JudgeRequest:
    return build_request(numbered_run(request.run_id), SETTINGS, request.slot)


class House:
    """The lane with all its parts."""

    def __init__(self, engine: Engine, client: ModelClient, settings: LaneSettings = AT_ONCE) -> None:
        self.engine = engine
        self.client = client
        self.rows = LaneRows(engine)
        self.kept = KeptJudgements(engine)
        self.budgets = MemoryBudgets()
        self.account = Account("batch:b", max_cost_usd=None)
        self.worst_cost: Callable[[str, int, int], float | None] = lambda *_: 0.0
        self.woken: list[int] = []
        self.settings = settings
        self.provider = Lane(client.connection, client.prices)
        self.numbers: dict[int, int] = {}  # run id -> what it left behind, where that is not its own
        self.load: Callable[[LaneRequest], JudgeRequest] = self.load_numbered
        self.batch_id = "b"

    def load_numbered(self, request: LaneRequest) -> JudgeRequest:
        return load(replace(request, run_id=self.numbers.get(request.run_id, request.run_id)))

    def step(self) -> None:
        spending = LaneSpending(self.budgets, lambda *_: [self.account], lambda *a: self.worst_cost(*a))
        parts = (self.rows, self.provider, self.load, judge_answer, spending, self.woken.extend)
        Shipping(*parts, self.settings).step()

    def judge(self, number: int) -> bool | None:
        """Whether run `number` has its judgement; None while it is in the lane."""
        return self.judge_as(number, number)

    def judge_as(self, run_id: int, number: int) -> bool | None:
        """The same for a run that left behind what run `number` did."""
        self.numbers[run_id] = number
        asker = Asker(run_id=run_id, batch_id=self.batch_id, label=f"run-{number}")
        lane = LaneAsk(self.rows, ask_with(self.client, asker), asker)
        try:
            return judge(numbered_run(number), SETTINGS, lane, self.kept).grading.summary is not None
        except InLane:
            return None

    def states(self) -> set[str]:
        with self.engine.begin() as connection:
            return set(connection.execute(select(lane_requests.c.state)).scalars())

    def kept_of(self, number: int) -> SlotJudgement:
        found = self.kept.get(load(LaneRequest("", number, "b", "default", Slot("simulated"), 0)).id)
        assert isinstance(found, SlotJudgement)
        return found

    def ledger(self) -> list[Any]:
        with self.engine.begin() as connection:
            return list(connection.execute(select(model_calls).order_by(model_calls.c.run_id)).all())


def paid(model: simulator.Simulator) -> tuple[int, int]:
    """Requests paid in batches, and messages paid in real time."""
    stats = model.stats()
    return stats["batches"].get("paid_requests", 0), stats["by_path"].get("/v1/messages", 0)


def test_judgements_travel_together_and_come_back(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    house = House(engine, client)
    assert [house.judge(number) for number in range(7)] == [None] * 7

    house.step()

    assert [house.judge(number) for number in range(7)] == [True] * 7
    assert sorted(house.woken) == list(range(7))
    assert paid(model) == (7, 0)
    assert model.stats()["batches"]["created"] == 1


def test_every_answer_of_the_lane_is_in_the_ledger_once_at_half_the_price_with_its_marker(
    engine: Engine, model: simulator.Simulator
) -> None:
    price = {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write_5m": 3.75, "cache_write_1h": 3.75}
    client = ModelClient(ClientSettings("test-key", model.url), prices=Prices({"models": {"simulated": [price]}}))
    house = House(engine, client)
    for number in (1, 2):
        house.judge(number)

    for _ in range(2):
        house.step()
    assert [house.judge(number) for number in (1, 2)] == [True, True]

    rows = house.ledger()
    assert [(row.run_id, row.team_id, row.batch_id, row.lane, row.purpose) for row in rows] == [
        (number, "default", "b", "batch", "judge") for number in (1, 2)
    ]
    assert all(row.simulated and row.answered_by == "simulated" for row in rows)
    for row in rows:
        tokens = Tokens(row.input_tokens, row.output_tokens, row.cache_read_tokens, row.cache_write_tokens)
        assert row.cost_usd == pytest.approx((client.prices.cost("simulated", tokens) or 0.0) / 2, abs=1e-8)
        assert row.cost_usd > 0
    assert LedgerRows(engine).spent_by_batch("b")[0] == pytest.approx(sum(row.cost_usd for row in rows))
    assert all(house.kept_of(row.run_id).simulated for row in rows)
    client.close()


def test_a_shipment_waits_until_it_is_full_or_old(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    patient = LaneSettings(max_requests=3, max_age_seconds=3_600.0, poll_seconds=0.0)
    house = House(engine, client, patient)
    house.judge(0)
    house.step()
    assert model.stats()["batches"] == {}

    house.judge(1)
    house.judge(2)
    house.step()

    assert model.stats()["batches"]["created"] == 1


def test_asking_again_while_it_is_on_its_way_adds_nothing(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    model.configure(batch_seconds=3_600.0)
    house = House(engine, client)
    for _ in range(3):
        assert house.judge(1) is None
        house.step()

    assert model.stats()["batches"]["created"] == 1


def killed(engine: Engine, model: simulator.Simulator, where: str) -> int:
    """A round of the lane in a process of its own; gives its exit code."""
    command = [sys.executable, str(TESTS / "lane_process.py")]
    url = engine.url.render_as_string(hide_password=False)
    paths = os.pathsep.join([str(TESTS.parent.parent), str(TESTS.parent.parent.parent)])
    environment = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run([*command, url, model.url, where], env=environment, timeout=120, check=False).returncode


@pytest.mark.parametrize("where", ["after create", "while collecting"])
def test_a_process_killed_between_send_and_collect_loses_nothing_and_pays_nothing_twice(
    engine: Engine, client: ModelClient, model: simulator.Simulator, where: str
) -> None:
    house = House(engine, client)
    for number in range(9):
        house.judge(number)

    assert killed(engine, model, where) == -signal.SIGKILL
    for _ in range(3):
        house.step()

    assert [house.judge(number) for number in range(9)] == [True] * 9
    assert paid(model) == (9, 0)
    assert sorted(row.run_id for row in house.ledger()) == list(range(9))
    assert model.stats()["batches"].get("repeated_requests", 0) == 0
    assert model.stats()["batches"]["created"] == 1


def test_a_sender_killed_before_the_provider_heard_of_it_is_replaced(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    house = House(engine, client)
    house.judge(1)
    assert house.rows.pack(AT_ONCE) is not None  # and then the process is gone

    house.step()
    house.step()

    assert house.judge(1) is True
    assert paid(model) == (1, 0)


OVER_AT_ONCE = LaneSettings(max_requests=50, max_age_seconds=0.0, poll_seconds=0.0, lease_seconds=-1.0)


def test_a_sender_whose_shipment_was_taken_over_while_it_built_the_bodies_sends_nothing(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    rival = House(engine, client)
    slow = House(engine, client, OVER_AT_ONCE)
    for number in range(3):
        slow.judge(number)

    def load_after_the_rival(request: LaneRequest) -> JudgeRequest:
        rival.step()
        return load(request)

    slow.load = load_after_the_rival
    slow.step()

    assert model.stats()["batches"]["created"] == 1
    rival.step()
    assert [slow.judge(number) for number in range(3)] == [True] * 3
    assert paid(model) == (3, 0)


class LateLane(Lane):
    """Its request stands still until somebody else has done a round."""

    def __init__(self, client: ModelClient, meanwhile: Callable[[], None]) -> None:
        super().__init__(client.connection, client.prices)
        self._meanwhile = meanwhile

    def create(self, requests: Mapping[str, Mapping[str, Any]]) -> LaneState:
        self._meanwhile()
        return super().create(requests)


def test_what_was_sent_although_somebody_else_had_taken_it_over_is_cancelled(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    model.configure(batch_seconds=3_600.0)
    rival = House(engine, client)
    frozen = House(engine, client, OVER_AT_ONCE)
    frozen.provider = LateLane(client, rival.step)
    frozen.judge(1)

    frozen.step()

    counted = model.stats()["batches"]
    assert (counted["created"], counted["cancelled"]) == (2, 1)
    assert frozen.states() == {"sent"}


def test_a_strangers_batch_of_the_same_size_is_not_taken_for_ours(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    house = House(engine, client)
    house.judge(1)
    assert house.rows.pack(AT_ONCE) is not None
    stranger = build_request(numbered_run(99), SETTINGS, Slot("simulated"))
    Lane(client.connection, client.prices).create({"somebody-elses": stranger.params()})

    for _ in range(4):
        house.step()

    assert house.judge(1) is True
    assert paid(model) == (2, 0)  # the stranger's and ours


def test_what_the_provider_could_not_answer_is_asked_in_real_time(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    model.add_faults({"kind": "server_error", "times": 1})
    house = House(engine, client)
    for number in range(3):
        house.judge(number)

    house.step()

    assert house.states() == {"answered", "returned"}
    assert [house.judge(number) for number in range(3)] == [True] * 3
    assert paid(model) == (2, 1)


def test_an_unusable_answer_from_the_lane_is_repaired_in_real_time(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    model.add_faults({"kind": "malformed", "times": 1})
    house = House(engine, client)
    house.judge(1)
    house.step()

    assert house.judge(1) is True
    assert paid(model) == (1, 1)


def test_a_refusal_in_the_lane_is_a_judge_error(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    model.add_faults({"kind": "refusal"})
    house = House(engine, client)
    house.judge(1)
    house.step()

    with pytest.raises(JudgeFailed, match="refusal"):
        house.judge(1)


def test_a_run_whose_judge_failed_is_asked_again_when_it_is_retried(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    model.add_faults({"kind": "refusal", "times": 1})
    store = Store(engine)
    house = House(engine, client)
    house.batch_id = add_batch(store)
    house.judge(1)
    house.step()
    with pytest.raises(JudgeFailed, match="refusal"):
        house.judge(1)
    with engine.begin() as connection:
        connection.execute(update(runs).where(runs.c.id == 1).values(stage="settled", outcome="judge_error"))

    house.rows.forget_answers(house.batch_id)

    assert house.judge(1) is None
    house.step()
    assert house.judge(1) is True


def cancel(house: House, store: Store) -> None:
    """As the desk does."""
    assert store.batches.cancel(house.batch_id)
    house.rows.cancel(house.batch_id)


def test_a_cancelled_batch_leaves_the_judgements_it_shared_to_others(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    store = Store(engine)
    house = House(engine, client)
    house.batch_id = add_batch(store)
    house.judge(1)
    cancel(house, store)
    with pytest.raises(StageFailed, match="cancelled"):
        house.judge(1)

    house.batch_id = add_batch(store)  # grades the same material

    assert house.judge_as(3, 1) is None
    house.step()
    assert house.judge_as(3, 1) is True
    assert paid(model) == (1, 0)


def test_a_cancelled_batch_that_is_retried_takes_its_travelling_judgements_back(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    store = Store(engine)
    house = House(engine, client)
    house.batch_id = add_batch(store)
    house.judge(1)
    house.settings = replace(AT_ONCE, poll_seconds=3_600.0)
    house.step()
    cancel(house, store)
    with engine.begin() as connection:
        connection.execute(update(batches).where(batches.c.id == house.batch_id).values(state="cancelled"))

    store.batches.retry(house.batch_id)

    assert house.judge(1) is None
    house.settings = AT_ONCE
    house.step()
    assert house.judge(1) is True
    assert paid(model) == (1, 0)


def test_a_cancelled_batch_cancels_its_shipment_and_its_requests(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    model.configure(batch_seconds=3_600.0)
    store = Store(engine)
    house = House(engine, client)
    house.batch_id = add_batch(store)
    house.judge(1)
    house.step()

    cancel(house, store)
    house.step()

    assert model.stats()["batches"]["cancelled"] == 1
    with pytest.raises(StageFailed) as stopped:
        house.judge(1)
    assert stopped.value.outcome is Outcome.CANCELLED
    assert paid(model) == (0, 0)


def test_a_judgement_offered_after_the_cancel_is_not_sent(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    store = Store(engine)
    house = House(engine, client)
    house.batch_id = add_batch(store)
    cancel(house, store)
    house.judge(1)

    house.step()

    assert (house.states(), model.stats()["batches"]) == ({"cancelled"}, {})


def test_a_cancel_while_the_shipment_is_sent_is_not_lost(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    model.configure(batch_seconds=3_600.0)
    store = Store(engine)
    house = House(engine, client)
    house.batch_id = add_batch(store)
    house.judge(1)
    house.provider = LateLane(client, lambda: cancel(house, store))

    house.step()

    assert model.stats()["batches"]["cancelled"] == 1


class DeafLane(Lane):
    """Cannot be told to cancel."""

    def cancel(self, lane_id: str) -> LaneState:
        raise Unavailable(f"nobody listens to {lane_id}")


def test_a_cancel_that_the_provider_did_not_hear_is_said_again(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    model.configure(batch_seconds=3_600.0)
    store = Store(engine)
    house = House(engine, client)
    house.batch_id = add_batch(store)
    house.judge(1)
    house.step()
    cancel(house, store)
    hearing, house.provider = house.provider, DeafLane(client.connection, client.prices)
    house.step()

    house.provider = hearing
    house.step()

    assert model.stats()["batches"]["cancelled"] == 1


def test_a_strangers_batch_taken_for_ours_is_never_cancelled(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    model.configure(batch_seconds=3_600.0)
    store = Store(engine)
    house = House(engine, client)
    house.batch_id = add_batch(store)
    house.judge(1)
    assert house.rows.pack(AT_ONCE) is not None
    stranger = build_request(numbered_run(99), SETTINGS, Slot("simulated"))
    Lane(client.connection, client.prices).create({"somebody-elses": stranger.params()})
    house.step()

    cancel(house, store)
    house.step()

    assert house.states() == {"cancelled"}
    assert "cancelled" not in model.stats()["batches"]


def test_the_lane_keeps_the_budget(engine: Engine, client: ModelClient, model: simulator.Simulator) -> None:
    house = House(engine, client)
    house.account = Account("batch:b", max_cost_usd=0.9)
    house.worst_cost = lambda *_: 1.0  # half of it in the lane: one fits, two do not
    house.judge(1)
    house.judge(2)

    house.step()
    house.step()

    assert paid(model) == (2, 0)  # the first cost nothing in the end, so the second could follow
    house.account = Account("batch:b", max_cost_usd=0.4)
    house.judge(3)
    house.step()
    with pytest.raises(OverBudget):
        house.judge(3)


def test_what_was_reserved_last_month_is_corrected_in_last_month() -> None:
    moments = [datetime(2026, 11, 30, 23, tzinfo=UTC), datetime(2026, 12, 1, 5, tzinfo=UTC)]
    budgets = MemoryBudgets()
    november, december = (month_account("t", moment, 10.0, None) for moment in moments)
    spending = LaneSpending(
        budgets, lambda _, moment: [month_account("t", moment, 10.0, None)], lambda *_: 16.0, lambda: moments[0]
    )
    request = LaneRequest("j", 1, "b", "t", Slot("simulated"), 0)
    spending.reserve(request, load(request))
    moments.pop(0)

    spending.correct(request, JudgeAnswer("", cost_usd=2.0))

    assert (budgets.spent(november).cost_usd, budgets.spent(december).cost_usd) == (2.0, 0.0)
    budgets.reserve(Reservation((november,)), Spend(8.0))  # nothing is held any more


def test_a_run_that_was_over_budget_is_asked_again_when_it_is_retried(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    house = House(engine, client)
    house.account, house.worst_cost = Account("batch:b", max_cost_usd=0.4), lambda *_: 1.0
    house.judge(1)
    house.judge(2)
    house.step()
    with pytest.raises(OverBudget):
        house.judge(1)

    house.account = Account("batch:b", max_cost_usd=4.0)

    assert house.judge(1) is None
    assert house.judge_as(3, 2) is None  # that run 2 had no money says nothing about run 3
    house.step()
    assert (house.judge(1), house.judge_as(3, 2)) == (True, True)
    assert paid(model) == (2, 0)


def test_two_rounds_at_once_send_a_request_once(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    house = House(engine, client)
    for number in range(5):
        house.judge(number)

    packed = [house.rows.pack(LaneSettings(max_requests=2, max_age_seconds=0.0)) for _ in range(2)]

    assert packed[0] is not None
    assert len(packed[0][1]) == 2
    assert packed[1] is None


def test_a_batch_the_provider_forgot_is_asked_in_real_time_and_stops_no_other(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    house = House(engine, client, replace(AT_ONCE, poll_seconds=3_600.0))
    for number in (1, 2):
        house.judge(number)
        house.step()
    forgotten = house.provider.recent()[-1]
    request = urllib.request.Request(f"{model.url}/v1/messages/batches/{forgotten.id}", method="DELETE")
    request.headers |= {"X-api-key": "test-key", "Anthropic-version": "2023-06-01"}
    urllib.request.urlopen(request, timeout=30).close()

    house.settings = AT_ONCE
    house.step()

    assert house.states() == {"returned", "answered"}
    assert house.woken == [1, 2]
    assert [house.judge(number) for number in (1, 2)] == [True, True]


def test_a_request_whose_run_is_gone_does_not_stop_the_others(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    house = House(engine, client)
    house.judge(1)
    house.judge(2)

    def load_unless_gone(request: LaneRequest) -> JudgeRequest:
        if request.run_id == 1:
            raise NotFound("there is no run 1")
        return load(request)

    house.load = load_unless_gone
    house.step()

    assert (house.states(), paid(model)) == ({"returned", "answered"}, (1, 0))


class RefusingLane(Lane):
    """Takes no message batch at all."""

    def create(self, requests: Mapping[str, Mapping[str, Any]]) -> LaneState:
        raise StageFailed(Outcome.JUDGE_ERROR, f"{len(requests)} requests are too many")


def test_a_refused_shipment_is_asked_in_real_time_with_the_money_it_had_reserved(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    house = House(engine, client)
    house.account, house.worst_cost = Account("batch:b", max_cost_usd=1.0), lambda *_: 2.0
    house.provider = RefusingLane(client.connection, client.prices)
    house.judge(1)

    house.step()

    house.budgets.reserve(Reservation((house.account,)), Spend(1.0))  # nothing of it is held
    assert house.judge(1) is True
    assert paid(model) == (0, 1)


class TornLane(Lane):
    """Its results have a line that was cut."""

    def _result(self, line: dict[str, Any], models: Mapping[str, str], simulated: bool) -> LaneResult:
        kept = {"custom_id": line["custom_id"]} if line["custom_id"] == min(models) else line
        return super()._result(kept, models, simulated)


def test_a_result_that_cannot_be_read_is_asked_in_real_time(
    engine: Engine, client: ModelClient, model: simulator.Simulator
) -> None:
    house = House(engine, client)
    house.provider = TornLane(client.connection, client.prices)
    for number in range(3):
        house.judge(number)

    house.step()

    assert [house.judge(number) for number in range(3)] == [True] * 3
    assert paid(model) == (3, 1)


def test_large_batches_choose_the_lane_by_themselves() -> None:
    settings = LaneSettings(auto_runs=100)

    assert uses_lane("batch", 1, settings)
    assert uses_lane("auto", 100, settings)
    assert not uses_lane("auto", 99, settings)
    assert not uses_lane("realtime", 10**6, settings)
    with pytest.raises(BadInput, match="choose one of"):
        uses_lane("cheap", 1, settings)
