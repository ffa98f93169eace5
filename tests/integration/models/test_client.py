"""Our client against the simulator: what every fault means for a run, and how often it asks."""

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from schemas.states import Outcome
from service.errors import StageFailed, Unavailable
from service.limits.port import Purpose, RetryLater
from service.models import Call, ClientSettings, ModelClient, SpendLimit
from service.models.lane import Lane
from service.models.port import ModelCall
from simulator import Simulator

PARAMS: dict[str, Any] = {"model": "simulated", "max_tokens": 500, "messages": [{"role": "user", "content": "hello"}]}


def call(purpose: Purpose = Purpose.EXECUTE, **changes: Any) -> Call:
    return Call(**{"params": PARAMS, "purpose": purpose, "timeout_seconds": 30.0, "label": "b/1/1", **changes})


def ask(client: ModelClient, way: str, purpose: Purpose = Purpose.EXECUTE, **changes: Any) -> Any:
    return getattr(client, way)(call(purpose, **changes))


both_ways = pytest.mark.parametrize("way", ["complete", "stream"])


@both_ways
def test_an_answer_is_labelled_counted_and_in_the_ledger(
    client: ModelClient, simulator: Simulator, ledger: list[ModelCall], way: str
) -> None:
    answer = ask(client, way)

    assert answer.simulated
    assert answer.stop_reason == "end_turn"
    assert answer.content == ({"type": "text", "text": "This is a simulated answer."},)
    counted = simulator.stats()["tokens"]
    assert (answer.tokens.input, answer.tokens.output) == (counted["input"], counted["output"])
    assert ledger[0].request_id == answer.request_id
    assert ledger[0].simulated
    assert simulator.requests()[0]["headers"]["x-assay-run"] == "b/1/1"


@both_ways
@pytest.mark.parametrize("kind", ["overloaded", "server_error", "unavailable", "cut", "stream_error", "rate_limited"])
def test_a_passing_fault_costs_tries_and_no_more(
    client: ModelClient, simulator: Simulator, ledger: list[ModelCall], way: str, kind: str
) -> None:
    simulator.add_faults({"kind": kind, "times": 2, "retry_after": 0.01})

    answer = ask(client, way)

    assert answer.attempts == ledger[0].attempts == simulator.stats()["requests"] == 3


@both_ways
@pytest.mark.parametrize("kind", ["overloaded", "server_error", "cut", "stream_error", "rate_limited"])
def test_a_lasting_fault_is_handed_back_after_the_bound(
    client: ModelClient, simulator: Simulator, way: str, kind: str
) -> None:
    simulator.add_faults({"kind": kind, "retry_after": 0.01})

    with pytest.raises(Unavailable):
        ask(client, way)

    assert simulator.stats()["requests"] == 3


def test_a_long_retry_after_is_handed_back_at_once(client: ModelClient, simulator: Simulator) -> None:
    simulator.add_faults({"kind": "rate_limited", "retry_after": 3600})

    with pytest.raises(RetryLater) as raised:
        ask(client, "complete")

    assert raised.value.seconds == 3600
    assert simulator.stats()["requests"] == 1


@both_ways
@pytest.mark.parametrize("kind", ["spend_limit", "billing"])
def test_a_spend_limit_is_not_tried_again_and_names_the_team(
    client: ModelClient, simulator: Simulator, way: str, kind: str
) -> None:
    simulator.add_faults({"kind": kind, "retry_after": 0.01})

    with pytest.raises(SpendLimit) as raised:
        ask(client, way, team="blue")

    assert raised.value.team == "blue"
    assert simulator.stats()["requests"] == 1


@both_ways
@pytest.mark.parametrize(
    ("kind", "purpose", "outcome"),
    [
        ("prompt_too_long", Purpose.EXECUTE, Outcome.EXECUTOR_ERROR),
        ("prompt_too_long", Purpose.JUDGE, Outcome.JUDGE_ERROR),
        ("too_large", Purpose.EXECUTE, Outcome.EXECUTOR_ERROR),
        ("unauthorized", Purpose.EXECUTE, Outcome.INFRA_ERROR),
        ("forbidden", Purpose.JUDGE, Outcome.INFRA_ERROR),
        ("not_found", Purpose.JUDGE, Outcome.INFRA_ERROR),
    ],
)
def test_a_refused_request_ends_in_its_outcome_at_once(
    client: ModelClient, simulator: Simulator, way: str, kind: str, purpose: Purpose, outcome: Outcome
) -> None:
    simulator.add_faults({"kind": kind})

    with pytest.raises(StageFailed) as raised:
        ask(client, way, purpose)

    assert raised.value.outcome is outcome
    assert simulator.stats()["requests"] == 1


@both_ways
def test_a_model_that_never_answers_is_a_timeout(client: ModelClient, simulator: Simulator, way: str) -> None:
    simulator.add_faults({"kind": "hang"})

    with pytest.raises(StageFailed) as raised:
        ask(client, way, timeout_seconds=0.3)

    assert raised.value.outcome is Outcome.TIMEOUT
    assert ask_again(client, simulator)


def ask_again(client: ModelClient, simulator: Simulator) -> bool:
    """Whether the client still works."""
    simulator.clear_faults()
    return bool(ask(client, "complete").text)


@both_ways
def test_an_answer_that_is_no_json_is_tried_again_and_then_handed_back(
    client: ModelClient, simulator: Simulator, ledger: list[ModelCall], way: str
) -> None:
    simulator.add_faults({"kind": "malformed", "body": True, "times": 1})
    answer = ask(client, way)
    assert (answer.attempts, answer.text) == (2, "This is a simulated answer.")

    simulator.add_faults({"kind": "malformed", "body": True})
    with pytest.raises(Unavailable):
        ask(client, way)

    row = ledger[-1]
    assert (row.error, row.attempts, row.tokens, row.simulated) == ("malformed", 3, None, True)
    assert row.request_id


@pytest.mark.parametrize(
    ("kind", "reason"), [("refusal", "refusal"), ("max_tokens", "max_tokens"), ("pause_turn", "pause_turn")]
)
def test_a_stop_reason_is_told_and_left_to_the_stage(
    client: ModelClient, simulator: Simulator, kind: str, reason: str
) -> None:
    simulator.add_faults({"kind": kind})

    assert ask(client, "complete").stop_reason == reason
    assert ask(client, "stream").stop_reason == reason


def test_nobody_home_is_handed_back() -> None:
    client = ModelClient(ClientSettings("any", "http://127.0.0.1:9"))

    with pytest.raises(Unavailable):
        ask(client, "complete", timeout_seconds=0.4)

    client.close()


def test_without_a_key_the_remedy_is_told() -> None:
    client = ModelClient(ClientSettings(None))

    with pytest.raises(Unavailable, match="ANTHROPIC_API_KEY"):
        ask(client, "complete")

    client.close()


def test_the_key_is_in_no_printed_form() -> None:
    assert "secret" not in repr(ClientSettings("secret", "http://127.0.0.1:9"))


def test_many_threads_share_one_client_and_its_connections(client: ModelClient, simulator: Simulator) -> None:
    simulator.configure(latency_seconds=0.3)
    together = threading.Barrier(30)

    def one(_number: int) -> str:
        together.wait()
        return str(ask(client, "stream").text)

    with ThreadPoolExecutor(30) as pool:
        texts = list(pool.map(one, range(60)))

    stats = simulator.stats()
    assert len(texts) == stats["answered"] == 60
    assert stats["peak_in_flight"] >= 20
    assert stats["connections"] <= 32 + 16 + 3


def test_a_forked_child_gets_connections_of_its_own(client: ModelClient, simulator: Simulator) -> None:
    ask(client, "complete")

    child = os.fork()
    if child == 0:
        os._exit(0 if ask(client, "complete").text else 1)
    _, status = os.waitpid(child, 0)

    assert os.waitstatus_to_exitcode(status) == 0
    assert ask(client, "complete").text
    assert simulator.stats()["answered"] == 3


def test_the_half_price_lane_brings_answers_and_errors_by_id(client: ModelClient, simulator: Simulator) -> None:
    lane = Lane(client.connection, client.prices)
    simulator.add_faults({"kind": "server_error", "times": 1})
    model = "claude-haiku-4-5"

    sent = lane.create({name: {**PARAMS, "model": model} for name in ("a", "b", "c")})
    state = lane.retrieve(sent.id)
    results = {one.custom_id: one for one in lane.results(sent.id, dict.fromkeys("abc", model))}

    assert state.has_ended
    assert state.counts["succeeded"] == 2
    assert sorted(results) == ["a", "b", "c"]
    errors = [one.error for one in results.values() if one.answer is None]
    answers = [one.answer for one in results.values() if one.answer is not None]
    assert errors == ["errored: server_error"]
    assert all(answer.simulated and answer.cost_usd for answer in answers)
    assert [one.id for one in lane.recent()] == [sent.id]


def test_a_lane_can_be_cancelled(client: ModelClient, simulator: Simulator) -> None:
    simulator.configure(batch_seconds=3600)
    lane = Lane(client.connection, client.prices)
    sent = lane.create({"a": PARAMS})

    assert lane.cancel(sent.id).is_cancelling
    assert [one.error for one in _ended(lane, sent.id)] == ["canceled"]


def _ended(lane: Lane, lane_id: str) -> list[Any]:
    assert lane.retrieve(lane_id).has_ended
    return list(lane.results(lane_id, {}))
