"""The door to the model for programs with a client of their own."""

import json
import socket
import stat
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx2
import pytest

from schemas.states import Outcome
from service.errors import StageFailed
from service.limits.port import Purpose
from service.models import Attempt, Call, ClientSettings, ModelClient
from service.models.gateway import Gateway
from service.models.passing import Allowance
from service.models.port import ModelCall
from simulator import Simulator

ASK: dict[str, Any] = {"model": "simulated", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]}


class Watch:
    def __init__(self) -> None:
        self.seen: list[Attempt] = []
        self.refusal: Exception | None = None

    def before(self, call: Call, number: int) -> None:
        assert (call.team, number > 0) == ("blue", True)
        if self.refusal:
            raise self.refusal

    def after(self, call: Call, attempt: Attempt) -> None:
        assert call.run_id == 7
        self.seen.append(attempt)


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def rows() -> list[ModelCall]:
    return []


@pytest.fixture
def door(simulator: Simulator, watch: Watch, rows: list[ModelCall]) -> Iterator[Gateway]:
    class Book:
        def record(self, call: ModelCall) -> None:
            rows.append(call)

    client = ModelClient(ClientSettings("sk-real", simulator.url), [watch], Book())
    call = Call({"model": "simulated", "max_tokens": 100}, Purpose.EXECUTE, team="blue", run_id=7, label="b/7")
    with Gateway(client, call, lambda body: body.replace(b"secret", b"public")) as opened:
        yield opened
    client.close()


def program(door: Gateway, key: str | None = None) -> anthropic.Anthropic:
    transport = httpx2.HTTPTransport(uds=str(door.socket))
    return anthropic.Anthropic(
        base_url="http://door",
        api_key=key or door.token,
        max_retries=0,
        http_client=anthropic.DefaultHttpxClient(transport=transport),
        open_telemetry=False,
    )


def knock(door: Gateway, path: str, body: str) -> int:
    """One raw request, its path as it stands; the status of the answer."""
    head = f"POST {path} HTTP/1.1\r\nhost: door\r\nx-api-key: {door.token}\r\nanthropic-version: 2023-06-01\r\n"
    head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(str(door.socket))
        line.sendall((head + body).encode())
        with line.makefile("rb") as answer:
            return int(answer.readline().split()[1])


def test_an_answer_passes_with_our_key_and_is_counted(
    door: Gateway, simulator: Simulator, watch: Watch, rows: list[ModelCall]
) -> None:
    with program(door) as client:
        plain = client.messages.create(**ASK)
        with client.messages.stream(**ASK) as stream:
            streamed = stream.get_final_message()

    assert plain.content == streamed.content or plain.content[0].type == streamed.content[0].type == "text"
    counted = simulator.stats()["tokens"]
    assert (door.tokens.input, door.tokens.output) == (counted["input"], counted["output"])
    assert [attempt.tokens for attempt in watch.seen] == [row.tokens for row in rows]
    assert all(row.simulated and row.request_id for row in rows)
    assert door.failure is None
    assert [seen["headers"]["x-assay-run"] for seen in simulator.requests()] == ["b/7", "b/7"]
    assert {seen["key_sent_as"] for seen in simulator.requests()} == {"x-api-key"}


def test_the_door_opens_to_its_own_token_only(door: Gateway, simulator: Simulator) -> None:
    with program(door, "another") as client, pytest.raises(anthropic.AuthenticationError):
        client.messages.create(**ASK)

    assert simulator.stats()["requests"] == 0
    assert stat.S_ISSOCK(door.socket.stat().st_mode)
    assert len(str(door.socket)) < 100


def test_only_messages_pass(door: Gateway, simulator: Simulator) -> None:
    with program(door) as client:
        assert client.messages.count_tokens(model="simulated", messages=ASK["messages"]).input_tokens > 0
        with pytest.raises(anthropic.NotFoundError):
            client.models.list()
        with pytest.raises(anthropic.NotFoundError):
            client.get("/control/requests", cast_to=object)

    assert simulator.stats()["by_path"] == {"/v1/messages/count_tokens": 1}


@pytest.mark.parametrize(
    "path",
    [
        "/v1/messages/batches",
        "/v1/messages/../files",
        "/v1/messages/%2e%2e/files",
        "/v1/messages/count_tokens/../batches",
        "//v1/messages",
        "/v1/messages/",
        "/v1/messagesandmore",
    ],
)
def test_nothing_but_the_two_questions_passes(door: Gateway, simulator: Simulator, path: str) -> None:
    status = knock(door, path, json.dumps(ASK))

    assert status == 404
    assert simulator.stats()["requests"] == 0


def test_a_query_is_not_passed_on_but_the_one_we_know(door: Gateway, simulator: Simulator) -> None:
    assert knock(door, "/v1/messages?beta=true&x=1", json.dumps(ASK)) == 200
    assert knock(door, "/v1/messages?x=1", json.dumps(ASK)) == 200

    assert simulator.stats()["by_path"] == {"/v1/messages": 2}


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/messages/count_tokens"])
def test_another_model_than_the_runs_is_refused(
    door: Gateway, simulator: Simulator, rows: list[ModelCall], path: str
) -> None:
    assert knock(door, path, json.dumps({**ASK, "model": "simulated-large"})) == 403

    assert simulator.stats()["requests"] == 0
    assert isinstance(door.failure, StageFailed)
    assert door.failure.outcome is Outcome.EXECUTOR_ERROR
    assert "simulated-large" in str(door.failure)
    assert rows == []


def test_a_model_named_twice_is_refused(door: Gateway, simulator: Simulator) -> None:
    body = '{"model": "simulated-large", ' + json.dumps(ASK).removeprefix("{")

    assert knock(door, "/v1/messages", body) == 400
    assert simulator.stats()["requests"] == 0


@pytest.mark.parametrize(
    ("allowance", "passes"), [(Allowance(calls=2), 2), (Allowance(total_tokens=1), 1), (Allowance(), 3)]
)
def test_a_run_has_so_many_calls_and_tokens(simulator: Simulator, allowance: Allowance, passes: int) -> None:
    client = ModelClient(ClientSettings("sk-real", simulator.url))
    with Gateway(client, Call(ASK, Purpose.EXECUTE), lambda body: body, allowance) as opened:
        told = [knock(opened, "/v1/messages", json.dumps(ASK)) for _ in range(3)]
        failure = opened.failure
    client.close()

    assert told == [200] * passes + [403] * (3 - passes)
    assert simulator.stats()["requests"] == passes
    assert (failure is None) == (passes == 3)


def test_a_cancelled_run_stops_spending(simulator: Simulator) -> None:
    stopped: list[bool] = []
    client = ModelClient(ClientSettings("sk-real", simulator.url))
    call = Call(ASK, Purpose.EXECUTE, is_cancelled=lambda: bool(stopped))
    with Gateway(client, call, lambda body: body) as opened:
        before = knock(opened, "/v1/messages", json.dumps(ASK))
        stopped.append(True)
        after = knock(opened, "/v1/messages", json.dumps(ASK))
        failure = opened.failure
    client.close()

    assert (before, after) == (200, 403)
    assert isinstance(failure, StageFailed)
    assert failure.outcome is Outcome.CANCELLED
    assert simulator.stats()["requests"] == 1


def test_a_request_is_looked_at_before_it_leaves(door: Gateway, simulator: Simulator) -> None:
    with program(door) as client:
        client.messages.create(**{**ASK, "messages": [{"role": "user", "content": "the secret"}]})

    assert "the public" in simulator.requests()[0]["body"]


def test_a_hook_that_refuses_stops_the_program(door: Gateway, simulator: Simulator, watch: Watch) -> None:
    watch.refusal = StageFailed(Outcome.OVER_BUDGET, "spent")

    with program(door) as client, pytest.raises(anthropic.PermissionDeniedError) as raised:
        client.messages.create(**ASK)

    assert raised.value.response.headers["x-should-retry"] == "false"
    assert door.failure is watch.refusal
    assert simulator.stats()["requests"] == 0


@pytest.mark.parametrize("kind", ["overloaded", "cut"])
def test_the_program_is_told_when_it_must_not_try_again(
    door: Gateway, simulator: Simulator, watch: Watch, kind: str
) -> None:
    simulator.add_faults({"kind": kind, "times": 3})

    told = []
    with program(door) as client:
        for _ in range(3):
            with pytest.raises(anthropic.APIError) as raised:
                client.messages.create(**ASK)
            if isinstance(raised.value, anthropic.APIStatusError):
                told.append(raised.value.response.headers.get("x-should-retry"))
        assert door.failure is not None
        client.messages.create(**ASK)

    assert told in ([None, None, "false"], [])
    assert [attempt.error for attempt in watch.seen[:3]] == [
        "overloaded_error" if kind == "overloaded" else "connection"
    ] * 3
    assert door.failure is None


def test_an_error_inside_a_stream_is_noticed(door: Gateway, simulator: Simulator, rows: list[ModelCall]) -> None:
    simulator.add_faults({"kind": "stream_error", "times": 1})

    with program(door) as client, pytest.raises(anthropic.APIStatusError), client.messages.stream(**ASK) as stream:
        stream.get_final_message()

    assert [row.error for row in rows] == ["overloaded_error"]


def test_a_closed_door_is_gone(simulator: Simulator) -> None:
    client = ModelClient(ClientSettings("sk-real", simulator.url))
    with Gateway(client, Call(ASK, Purpose.EXECUTE), lambda body: body) as opened:
        path = str(opened.socket)
    client.close()

    with socket.socket(socket.AF_UNIX) as knock, pytest.raises(FileNotFoundError):
        knock.connect(path)
