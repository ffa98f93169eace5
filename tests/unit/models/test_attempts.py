"""How often a call is tried, and what is told to hooks and ledger on the way."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from schemas.states import Outcome
from service.errors import StageFailed, Unavailable
from service.limits.port import Purpose
from service.models.attempts import Attempts, Patience, Received
from service.models.failures import retry_after
from service.models.port import Attempt, Call, Hook, ModelCall, Tokens
from service.models.prices import known_prices

USAGE = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2}
MESSAGE: dict[str, Any] = {
    "id": "msg",
    "model": "simulated",
    "content": [{"type": "text", "text": "yes"}],
    "stop_reason": "end_turn",
    "usage": USAGE,
}


@dataclass
class Book:
    rows: list[ModelCall] = field(default_factory=list)

    def record(self, call: ModelCall) -> None:
        self.rows.append(call)


@dataclass
class Watch:
    """A hook that notes what it sees, and may refuse."""

    log: list[str] = field(default_factory=list)
    refusal: Exception | None = None
    attempts: list[Attempt] = field(default_factory=list)

    def before(self, call: Call, number: int) -> None:
        assert call.params
        self.log.append(f"before {number}")
        if self.refusal:
            raise self.refusal

    def after(self, call: Call, attempt: Attempt) -> None:
        assert call.params
        self.log.append(f"after {attempt.number}")
        self.attempts.append(attempt)


def call(**changes: Any) -> Call:
    given: dict[str, Any] = {"params": {"model": "simulated", "max_tokens": 100, "messages": []}, **changes}
    return Call(purpose=Purpose.EXECUTE, **given)


def trying(book: Book | None = None, *hooks: Hook, retries: int = 2) -> tuple[Attempts, list[float]]:
    slept: list[float] = []
    attempts = Attempts(Patience(retries, 30.0), known_prices(), hooks, book, sleep=slept.append)
    return attempts, slept


def sends(*results: Any) -> Any:
    left: Iterator[Any] = iter(results)

    def send(_call: Call, _seconds: float) -> Received:
        result = next(left)
        if isinstance(result, Exception):
            raise result
        return Received(result, {"request-id": "req_1", "x-assay-simulated": "1"})

    return send


def test_an_answer_is_counted_priced_and_written_down() -> None:
    book, watch = Book(), Watch()
    attempts, _ = trying(book, watch)

    answer = attempts.ask(call(team="blue", batch_id="b", run_id=7), sends(MESSAGE))

    assert answer.text == "yes"
    assert answer.tokens == Tokens(10, 5, 3, 2)
    assert answer.tokens.total == 20
    row = book.rows[0]
    assert (row.team, row.batch_id, row.run_id, row.attempts, row.error) == ("blue", "b", 7, 1, None)
    assert (row.cost_usd, row.request_id, row.simulated) == (0.0, "req_1", True)
    assert watch.log == ["before 1", "after 1"]
    assert watch.attempts[0].tokens == answer.tokens


def test_a_cut_connection_is_tried_again_and_every_try_passes_the_hooks() -> None:
    book, watch = Book(), Watch()
    attempts, slept = trying(book, watch)

    answer = attempts.ask(call(), sends(ConnectionError(), ConnectionError(), MESSAGE))

    assert answer.attempts == book.rows[0].attempts == 3
    assert watch.log == ["before 1", "after 1", "before 2", "after 2", "before 3", "after 3"]
    assert len(slept) == 2
    assert slept[0] < slept[1]


def test_no_call_is_repeated_beyond_the_bound() -> None:
    book = Book()
    attempts, slept = trying(book, retries=1)

    with pytest.raises(Unavailable):
        attempts.ask(call(), sends(ConnectionError(), ConnectionError()))

    assert len(slept) == 1
    assert (book.rows[0].attempts, book.rows[0].error, book.rows[0].tokens) == (2, "connection", None)


def test_an_answer_that_is_no_json_is_tried_again() -> None:
    attempts, _ = trying()

    assert attempts.ask(call(), sends(ValueError("no json"), MESSAGE)).attempts == 2


@pytest.mark.parametrize(
    "message",
    [
        [],
        {},
        "text",
        {**MESSAGE, "usage": None},
        {**MESSAGE, "usage": {"input_tokens": "many"}},
        {**MESSAGE, "content": None},
        {**MESSAGE, "content": ["text"]},
        {**MESSAGE, "stop_reason": None},
        {name: value for name, value in MESSAGE.items() if name != "id"},
    ],
)
def test_json_that_is_no_message_is_tried_again_and_may_have_been_billed(message: Any) -> None:
    book, watch = Book(), Watch()
    attempts, _ = trying(book, watch, retries=1)

    assert attempts.ask(call(), sends(message, MESSAGE)).attempts == 2
    with pytest.raises(Unavailable):
        attempts.ask(call(), sends(message, message))

    row, tried = book.rows[-1], watch.attempts[-1]
    assert (row.error, row.attempts, row.tokens, row.cost_usd, row.request_id) == ("malformed", 2, None, None, "req_1")
    assert (tried.error, tried.status, tried.tokens) == ("malformed", 200, None)


def test_a_deadline_ends_the_call_as_a_timeout() -> None:
    book, watch = Book(), Watch()
    attempts, _ = trying(book, watch)

    with pytest.raises(StageFailed) as raised:
        attempts.ask(call(), sends(TimeoutError()))

    assert raised.value.outcome is Outcome.TIMEOUT
    assert book.rows[0].error == "timeout"
    assert watch.log == ["before 1", "after 1"]


def test_a_retry_that_would_pass_the_deadline_is_handed_back_instead() -> None:
    attempts, slept = trying()

    with pytest.raises(Unavailable):
        attempts.ask(call(timeout_seconds=0.1), sends(ConnectionError()))

    assert slept == []


def test_a_hook_that_refuses_keeps_the_request_from_leaving() -> None:
    first, second = Watch(), Watch(refusal=StageFailed(Outcome.OVER_BUDGET, "spent"))
    attempts, _ = trying(None, first, second)

    with pytest.raises(StageFailed, match="spent"):
        attempts.ask(call(), sends())

    assert first.log == ["before 1", "after 1"]
    assert second.log == ["before 1"]
    assert first.attempts[0].error == "not_sent"


def test_a_cancelled_run_asks_nothing() -> None:
    attempts, _ = trying()

    with pytest.raises(StageFailed) as raised:
        attempts.ask(call(is_cancelled=lambda: True), sends())

    assert raised.value.outcome is Outcome.CANCELLED


def test_a_bug_of_ours_is_not_taken_for_the_models() -> None:
    attempts, _ = trying()

    with pytest.raises(AttributeError):
        attempts.ask(call(), sends(AttributeError("ours")))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1", "retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_the_wait_a_server_asks_for_is_read_in_all_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds
