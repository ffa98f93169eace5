"""A message put together from the bytes of its stream."""

from typing import Any

import pytest

from service.models.failures import StreamFailed
from service.models.streaming import Gathering
from simulator.answers import Message
from simulator.caching import InputUsage
from simulator.sse import events

CONTENT: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "Let me see…", "signature": "c2ln"},
    {"type": "text", "text": "I will write\ntwo files – naïvely."},
    {"type": "tool_use", "id": "t1", "name": "Write", "input": {"file_path": "a.md", "content": 'x "y"\n{}'}},
    {"type": "tool_use", "id": "t2", "name": "Glob", "input": {}},
]
USED = InputUsage(fresh=10, read=20, written_5m=30, written_1h=0)


def streamed(*, size: int, events_left_out: int = 0) -> Gathering:
    parts = list(events(Message("msg_1", CONTENT, "tool_use", 77), USED))
    data = b"".join(parts[: len(parts) - events_left_out])
    gathering = Gathering({})
    for start in range(0, len(data), size):
        gathering.feed(data[start : start + size])
    return gathering


@pytest.mark.parametrize("size", [1, 7, 100, 100_000])
def test_a_message_comes_out_as_it_went_in_however_it_is_cut_into_pieces(size: int) -> None:
    message = streamed(size=size).message()

    assert message["content"] == CONTENT
    assert message["stop_reason"] == "tool_use"
    assert message["usage"]["output_tokens"] == 77
    assert message["usage"]["cache_read_input_tokens"] == 20


def test_a_stream_that_ends_early_is_no_message() -> None:
    with pytest.raises(ConnectionError):
        streamed(size=100, events_left_out=1).message()


def test_an_error_event_says_what_it_means() -> None:
    gathering = Gathering({"request-id": "req_1"})

    with pytest.raises(StreamFailed) as raised:
        gathering.feed(b'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"x"}}\n\n')

    assert raised.value.failure.is_retryable
    assert raised.value.failure.kind == "overloaded_error"
    assert raised.value.failure.request_id == "req_1"


@pytest.mark.parametrize(
    "line",
    [
        b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_del',
        b"data: [1]",
        b'data: {"type":"content_block_delta","index":5,"delta":{"type":"text_delta","text":"lost its start"}}',
        b'data: {"type":"content_block_delta","index":0}',
        b'data: {"type":"message_start","message":null}',
    ],
)
def test_a_line_that_cannot_be_read_is_no_part_of_a_message(line: bytes) -> None:
    parts = list(events(Message("msg_1", [{"type": "text", "text": "do not delete"}], "end_turn", 7), USED))
    gathering = Gathering({"Request-Id": "req_1"})
    gathering.feed(b"".join(parts[:4]))

    with pytest.raises(StreamFailed) as raised:
        gathering.feed(line + b"\n\n" + b"".join(parts[5:]))

    failure = raised.value.failure
    assert (failure.kind, failure.is_retryable, failure.request_id) == ("malformed", True, "req_1")


def test_what_gateways_put_between_events_is_passed_over() -> None:
    gathering = Gathering({})

    gathering.feed(b": keep-alive\n\ndata:\n\n" + b"".join(events(Message("m", CONTENT, "tool_use", 7), USED)))
    gathering.feed(b"data: [DONE]\n\n")

    assert gathering.message()["content"] == CONTENT


def test_a_tool_call_that_was_cut_has_no_input() -> None:
    gathering = Gathering({})
    block = b'{"type":"tool_use","id":"t","name":"Write","input":{}}'
    gathering.feed(b'data: {"type":"message_start","message":{"id":"m","usage":{}}}\n')
    gathering.feed(b'data: {"type":"content_block_start","index":0,"content_block":' + block + b"}\n")
    delta = b'{"type":"input_json_delta","partial_json":"{\\"file_"}'
    gathering.feed(b'data: {"type":"content_block_delta","index":0,"delta":' + delta + b"}\n")
    gathering.feed(b'data: {"type":"content_block_stop","index":0}\ndata: {"type":"message_stop"}\n')

    assert gathering.message()["content"] == [{"type": "tool_use", "id": "t", "name": "Write", "input": {}}]


def test_half_a_character_never_comes_out() -> None:
    content = [
        {"type": "text", "text": "half \ud83d, whole \U0001f600"},
        {"type": "tool_use", "id": "t", "name": "Write", "input": {"file_path": "a\udcff", "content": ["\ude00"]}},
    ]
    gathering = Gathering({})
    for event in events(Message("msg_1", content, "tool_use", 7), USED):
        gathering.feed(event)

    text, tool = gathering.message()["content"]

    assert text["text"] == "half \ufffd, whole \U0001f600"
    assert tool["input"] == {"file_path": "a\ufffd", "content": ["\ufffd"]}
