"""The simulator as the real SDK sees it."""

import asyncio
import json
from typing import Any, Literal

import anthropic
import httpx2
import pytest
from pydantic import BaseModel

from simulator import Simulator, start

ASK: dict[str, Any] = {"model": "simulated", "max_tokens": 1000, "messages": [{"role": "user", "content": "hello"}]}
TOOLS = [{"name": name, "description": "-", "input_schema": {"type": "object"}} for name in ("Read", "Write")]


class Verdict(BaseModel):
    id: Literal["E1", "E2"]
    passed: bool
    evidence: str


class Verdicts(BaseModel):
    verdicts: list[Verdict]
    score: Literal[1, 2, 3, 4, 5]


def test_a_plain_answer_is_marked_as_simulated(client: anthropic.Anthropic) -> None:
    answer = client.messages.with_raw_response.create(**ASK)

    assert answer.headers["x-assay-simulated"] == "1"
    message = answer.parse()
    assert (message.model, message.stop_reason) == ("simulated", "end_turn")
    assert message.usage.output_tokens > 0


def test_a_stream_says_the_same_as_a_plain_answer(client: anthropic.Anthropic) -> None:
    asked: dict[str, Any] = {**ASK, "tools": TOOLS, "messages": [{"role": "user", "content": "write haiku.md"}]}

    plain = client.messages.create(**asked)
    with client.messages.stream(**asked) as stream:
        streamed = stream.get_final_message()

    assert streamed.stop_reason == plain.stop_reason == "tool_use"
    assert [b.to_dict() | {"id": ""} for b in streamed.content] == [b.to_dict() | {"id": ""} for b in plain.content]
    assert streamed.usage.output_tokens == plain.usage.output_tokens


def test_a_structured_answer_follows_its_schema(client: anthropic.Anthropic) -> None:
    answer = client.messages.parse(**ASK, output_format=Verdicts).parsed_output

    assert answer is not None
    assert [verdict.id for verdict in answer.verdicts] == ["E1", "E2"]


def test_the_second_call_with_the_same_prefix_reads_the_cache(client: anthropic.Anthropic) -> None:
    system: Any = [{"type": "text", "text": "stable " * 100, "cache_control": {"type": "ephemeral"}}]

    first = client.messages.create(**ASK, system=system).usage
    second = client.messages.create(**ASK, system=system).usage

    assert (first.cache_read_input_tokens, second.cache_creation_input_tokens) == (0, 0)
    assert first.cache_creation_input_tokens == second.cache_read_input_tokens
    assert (second.cache_read_input_tokens or 0) > 100


def test_both_ways_of_sending_the_key_are_taken(simulator: Simulator) -> None:
    statuses = []
    for header in ({"x-api-key": "k"}, {"authorization": "Bearer k"}, {}, {"x-api-key": "invalid"}):
        headers = {"anthropic-version": "2023-06-01", **header}
        statuses.append(httpx2.post(f"{simulator.url}/v1/messages", headers=headers, json=ASK).status_code)

    assert statuses == [200, 200, 401, 401]
    assert [seen["key_sent_as"] for seen in simulator.requests()] == ["x-api-key", "bearer", "", "x-api-key"]
    assert not any("authorization" in seen["headers"] for seen in simulator.requests())


@pytest.mark.parametrize(
    "bad",
    [
        {"messages": [{"role": "assistant", "content": "first"}]},
        {"messages": [{"role": "user", "content": " "}]},
        {"extra_body": {"temperature": 0.5}},
        {
            "messages": [
                {"role": "user", "content": "x"},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Read", "input": {}}]},
                {"role": "user", "content": "no result"},
            ]
        },
        {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object", "properties": {}}}}},
    ],
)
def test_what_the_api_refuses_is_refused_here_too(client: anthropic.Anthropic, bad: dict[str, Any]) -> None:
    with pytest.raises(anthropic.BadRequestError):
        client.messages.create(**{**ASK, **bad})


def test_tokens_and_models_can_be_asked(client: anthropic.Anthropic) -> None:
    counted = client.messages.count_tokens(model="simulated", messages=ASK["messages"])

    assert counted.input_tokens > 0
    assert [model.id for model in client.models.list()] == ["simulated"]
    assert client.models.retrieve("simulated").lifecycle == "active"


ERRORS = [
    ("rate_limited", anthropic.RateLimitError),
    ("ramp_limited", anthropic.RampLimitExceededError),
    ("spend_limit", anthropic.EnforcedSpendLimitReachedError),
    ("billing", anthropic.APIStatusError),
    ("overloaded", anthropic.OverloadedError),
    ("server_error", anthropic.InternalServerError),
    ("unauthorized", anthropic.AuthenticationError),
    ("forbidden", anthropic.PermissionDeniedError),
    ("not_found", anthropic.NotFoundError),
    ("too_large", anthropic.ContentTooLargeError),
    ("prompt_too_long", anthropic.BadRequestError),
    ("cut", anthropic.APIConnectionError),
]


@pytest.mark.parametrize(("kind", "error"), ERRORS)
def test_a_fault_arrives_as_the_sdks_own_error(
    simulator: Simulator, client: anthropic.Anthropic, kind: str, error: type[Exception]
) -> None:
    simulator.add_faults({"kind": kind, "times": 1, "retry_after": 7})

    with pytest.raises(error) as raised:
        client.messages.create(**ASK)
    after = client.messages.create(**ASK)

    assert after.stop_reason == "end_turn"
    if isinstance(raised.value, anthropic.RateLimitError):
        assert raised.value.response.headers["retry-after"] == "7"
    assert simulator.stats()["faults"] == {kind: 1}


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("refusal", "refusal"),
        ("max_tokens", "max_tokens"),
        ("context_exceeded", "model_context_window_exceeded"),
        ("pause_turn", "pause_turn"),
    ],
)
def test_a_fault_can_be_a_stop_reason(
    simulator: Simulator, client: anthropic.Anthropic, kind: str, reason: str
) -> None:
    simulator.add_faults({"kind": kind, "times": 1})

    assert client.messages.create(**ASK).stop_reason == reason


def test_a_stream_can_be_cut_or_end_in_an_error_event(simulator: Simulator, client: anthropic.Anthropic) -> None:
    simulator.add_faults({"kind": "cut", "times": 1}, {"kind": "stream_error", "times": 1})

    with pytest.raises(httpx2.RemoteProtocolError), client.messages.stream(**ASK) as stream:
        stream.get_final_message()
    with pytest.raises(anthropic.APIStatusError) as raised, client.messages.stream(**ASK) as stream:
        stream.get_final_message()

    assert raised.value.type == "overloaded_error"


def test_a_request_limit_answers_429_above_it(client: anthropic.Anthropic, simulator: Simulator) -> None:
    simulator.configure(requests_per_minute=3)

    for _ in range(3):
        client.messages.create(**ASK)
    with pytest.raises(anthropic.RateLimitError) as raised:
        client.messages.create(**ASK)

    assert int(raised.value.response.headers["retry-after"]) > 0
    assert raised.value.response.headers["anthropic-ratelimit-requests-remaining"] == "0"


def test_without_a_limit_none_is_told_and_one_that_is_set_is(client: anthropic.Anthropic, simulator: Simulator) -> None:
    without = client.messages.with_raw_response.create(**ASK).headers
    simulator.configure(tokens_per_minute=5_000)
    with_one = client.messages.with_raw_response.create(**ASK).headers

    assert not [name for name in without if "ratelimit" in name]
    assert with_one["anthropic-ratelimit-input-tokens-limit"] == "5000"


def test_a_message_batch_goes_its_way(client: anthropic.Anthropic, simulator: Simulator) -> None:
    requests: Any = [{"custom_id": f"run-{number}", "params": ASK} for number in range(5)]
    simulator.configure(batch_seconds=3600)
    waiting = client.messages.batches.create(requests=requests)
    simulator.configure(batch_seconds=0)
    simulator.add_faults({"kind": "server_error", "times": 1})
    quick = client.messages.batches.create(requests=requests)

    ended = client.messages.batches.retrieve(quick.id)
    results = {one.custom_id: one.result.type for one in client.messages.batches.results(quick.id)}

    assert client.messages.batches.retrieve(waiting.id).processing_status == "in_progress"
    assert ended.request_counts.to_dict() == {
        "processing": 0,
        "succeeded": 4,
        "errored": 1,
        "canceled": 0,
        "expired": 0,
    }
    assert sorted(results) == [f"run-{number}" for number in range(5)]
    assert client.messages.batches.cancel(waiting.id).processing_status == "canceling"
    assert client.messages.batches.retrieve(waiting.id).request_counts.canceled == 5
    assert {batch.id for batch in client.messages.batches.list()} == {waiting.id, quick.id}
    counted = simulator.stats()["batches"]
    assert (counted["created"], counted["paid_requests"], counted["repeated_requests"]) == (2, 4, 5)


def test_a_batch_with_an_id_twice_is_refused(client: anthropic.Anthropic) -> None:
    requests: Any = [{"custom_id": "same", "params": ASK}] * 2

    with pytest.raises(anthropic.BadRequestError):
        client.messages.batches.create(requests=requests)


def test_it_holds_a_thousand_requests_at_once() -> None:
    many = 1_000

    async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
        writer.write(raw_request())
        answer = await reader.read()
        writer.close()
        return answer

    async def ask_all(port: int) -> list[bytes]:
        # Connected first, and without the SDK: then all have asked long before the first is answered.
        lines = [await asyncio.open_connection("127.0.0.1", port) for _ in range(many)]
        return await asyncio.gather(*(ask(*line) for line in lines))

    with start(latency_seconds=3.0, keep_requests=0) as simulator:
        answers = asyncio.run(ask_all(int(simulator.url.rsplit(":", 1)[1])))
        stats = simulator.stats()

    assert all(answer.startswith(b"HTTP/1.1 200 ") for answer in answers)
    assert stats["peak_in_flight"] == stats["answered"] == many
    assert stats["in_flight"] == 0


def raw_request() -> bytes:
    body = json.dumps(ASK).encode()
    head = "POST /v1/messages HTTP/1.1\r\nx-api-key: k\r\nanthropic-version: 2023-06-01\r\nconnection: close\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode() + body


def test_counters_can_be_set_back(client: anthropic.Anthropic, simulator: Simulator) -> None:
    client.messages.create(**ASK)
    assert simulator.stats()["requests"] == 1

    simulator.reset()

    stats = simulator.stats()
    assert (stats["requests"], stats["answered"], simulator.requests()) == (0, 0, [])


def test_an_unknown_setting_or_fault_is_refused_by_name(simulator: Simulator) -> None:
    with pytest.raises(ValueError, match="speed"):
        simulator.configure(speed=3)
    with pytest.raises(ValueError, match="explode"):
        simulator.add_faults({"kind": "explode"})
