"""Message batches: half the price, within a day. Thin: who sends what when is decided elsewhere."""

import asyncio
import json
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from service import log
from service.errors import AssayError, Unavailable
from service.limits.port import Purpose
from service.models.attempts import tokens_of
from service.models.client import Connection
from service.models.failures import failure_of
from service.models.port import Answer, Call
from service.models.prices import Prices

TIMEOUT_SECONDS = 120.0


@dataclass(frozen=True)
class LaneState:
    """Where a message batch stands."""

    id: str
    has_ended: bool
    is_cancelling: bool
    counts: Mapping[str, int]  # processing, succeeded, errored, canceled, expired
    created_at: str


@dataclass(frozen=True)
class LaneResult:
    """What became of one request: an answer, or why there is none."""

    custom_id: str
    answer: Answer | None
    error: str | None = None  # "errored: …", "canceled", "expired"


class Lane:
    """The half-price lane of a client's connection. Errors are those of a call; nothing is tried again here.

    Creating is not safe to repeat: after an error without an answer, look through `recent` before sending again.
    """

    def __init__(self, connection: Connection, prices: Prices, team: str = "default") -> None:
        self._connection = connection
        self._prices = prices
        self._team = team

    def create(self, requests: Mapping[str, Mapping[str, Any]]) -> LaneState:
        """Send requests, bodies by custom id."""

        async def work() -> Any:
            client = await self._connection.client()
            wanted: Any = [{"custom_id": name, "params": dict(params)} for name, params in requests.items()]
            # The SDK's timeout is one for each read and write: a large body that trickles would never meet it.
            async with asyncio.timeout(TIMEOUT_SECONDS):
                return await client.messages.batches.create(requests=wanted, timeout=TIMEOUT_SECONDS)

        try:
            return _state(self._run(work()))
        except TimeoutError as late:
            raise Unavailable(f"the provider took no message batch within {TIMEOUT_SECONDS:.0f} s") from late

    def retrieve(self, lane_id: str) -> LaneState:
        """Where a batch stands."""

        async def work() -> Any:
            client = await self._connection.client()
            return await client.messages.batches.retrieve(lane_id, timeout=TIMEOUT_SECONDS)

        return _state(self._repeatably(work()))

    def recent(self, limit: int = 20) -> list[LaneState]:
        """The newest batches of this key, newest first."""

        async def work() -> Any:
            client = await self._connection.client()
            return (await client.messages.batches.list(limit=limit, timeout=TIMEOUT_SECONDS)).data

        return [_state(batch) for batch in self._repeatably(work())]

    def cancel(self, lane_id: str) -> LaneState:
        """Ask for the end of a batch."""

        async def work() -> Any:
            client = await self._connection.client()
            return await client.messages.batches.cancel(lane_id, timeout=TIMEOUT_SECONDS)

        return _state(self._repeatably(work()))

    def results(self, lane_id: str, models: Mapping[str, str]) -> Iterator[LaneResult]:
        """The results of an ended batch, in no order; `models` names the model asked by custom id, for the price."""

        async def work() -> Any:
            client = await self._connection.client()
            answer = await client.messages.batches.with_raw_response.results(lane_id, timeout=TIMEOUT_SECONDS)
            return await answer.read(), answer.headers.get("x-assay-simulated") == "1"

        body, simulated = self._repeatably(work())
        for line in body.splitlines():
            if line.strip():
                try:
                    yield self._result(json.loads(line), models, simulated)
                except (ValueError, LookupError, TypeError, AttributeError) as error:
                    # Its request comes back without a result; the others are not to suffer for it.
                    log.error("result of the provider cannot be read", lane=lane_id, reason=repr(error)[:200])

    def _result(self, line: dict[str, Any], models: Mapping[str, str], simulated: bool) -> LaneResult:
        result = line["result"]
        if result["type"] != "succeeded":
            told = ((result.get("error") or {}).get("error") or {}).get("message")
            return LaneResult(line["custom_id"], None, f"{result['type']}: {told}" if told else result["type"])
        message = result["message"]
        tokens = tokens_of(message["usage"])
        answer = Answer(
            id=message["id"],
            model=message["model"],
            content=tuple(message["content"]),
            stop_reason=message["stop_reason"],
            tokens=tokens,
            cost_usd=self._prices.cost(models.get(line["custom_id"], message["model"]), tokens, "batch"),
            seconds=0.0,
            request_id=None,
            simulated=simulated,
            stop_details=message.get("stop_details"),
        )
        return LaneResult(line["custom_id"], answer)

    def _repeatably(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self._run(work, waits_for_key=True)

    def _run(self, work: Coroutine[Any, Any, Any], waits_for_key: bool = False) -> Any:
        try:
            return self._connection.background.run(work)
        except AssayError:
            raise
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                raise
            if waits_for_key and failure.status in (401, 403):
                # What was paid for is still there when the key is right again.
                raise Unavailable(f"the provider refused the key; set ANTHROPIC_API_KEY ({failure.detail})") from error
            asked = Call({"model": "message batches", "max_tokens": 0}, Purpose.JUDGE, team=self._team)
            raise failure.as_error(asked) from error


def _state(batch: Any) -> LaneState:
    return LaneState(
        id=batch.id,
        has_ended=batch.processing_status == "ended",
        is_cancelling=batch.processing_status == "canceling",
        counts=batch.request_counts.to_dict(),
        created_at=batch.created_at.isoformat(),
    )


def by_custom_id(results: Sequence[LaneResult]) -> dict[str, LaneResult]:
    """Results as a table."""
    return {result.custom_id: result for result in results}
