"""The model client of a process: built once, used by all its threads."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic_core import PydanticSerializationError, to_json

from service.errors import Unavailable
from service.models.attempts import Attempts, Patience, Received
from service.models.background import Background
from service.models.clean_text import clean, read_json
from service.models.failures import malformed
from service.models.port import Answer, Call, Hook, Ledger
from service.models.prices import Prices, known_prices
from service.models.streaming import Gathering

if TYPE_CHECKING:
    import httpx2
    from anthropic import AsyncAnthropic, RequestOptions

ANTHROPIC = "https://api.anthropic.com"
_CONNECT_SECONDS = 5.0
_SPARE_CONNECTIONS = 16
# Clients of the process we were forked from. Were they collected, they would take their connections out of the epoll
# that both processes share, and the parent would wait for answers for ever.
_ABANDONED: list[Any] = []


@dataclass(frozen=True)
class ClientSettings:
    """Where the model is and how we treat it."""

    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None  # None: Anthropic
    concurrency: int = 64  # requests at once; the pool has a connection for each
    patience: Patience = field(default_factory=Patience)


class Connection:
    """The SDK's client on the background loop; made on first use, so that nothing is paid for by who never asks."""

    def __init__(self, settings: ClientSettings) -> None:
        self.settings = settings
        self.background = Background()
        self._client: AsyncAnthropic | None = None
        self._owner: asyncio.AbstractEventLoop | None = None

    async def client(self) -> "AsyncAnthropic":
        """The client of this loop; runs on the loop only, where nobody can race."""
        loop = asyncio.get_running_loop()
        if self._client is not None and self._owner is not loop:
            _ABANDONED.append(self._client)
            self._client = None
        if self._client is None:
            self._client, self._owner = _build(self.settings), loop
        return self._client

    def close(self) -> None:
        """Close the connections and end the loop; a later call opens them again."""
        client, self._client = self._client, None
        if client is not None and self._owner is self.background.loop():
            self.background.run(client.close())
        self.background.stop()


class ModelClient:
    """Asks a model; implements Models."""

    def __init__(
        self,
        settings: ClientSettings,
        hooks: Sequence[Hook] = (),
        ledger: Ledger | None = None,
        prices: Prices | None = None,
    ) -> None:
        self.connection = Connection(settings)
        self.prices = prices or known_prices()
        self.attempts = Attempts(settings.patience, self.prices, hooks, ledger)

    def complete(self, call: Call) -> Answer:
        body = _body(call.params)
        return self.attempts.ask(call, lambda one, left: self.connection.background.run(self._create(one, body, left)))

    def stream(self, call: Call) -> Answer:
        body = _body({**call.params, "stream": True})
        return self.attempts.ask(call, lambda one, left: self.connection.background.run(self._stream(one, body, left)))

    def close(self) -> None:
        """Let go of connections and thread."""
        self.connection.close()

    async def _create(self, call: Call, body: bytes, left: float) -> Received:
        async with asyncio.timeout(left):
            answer = await self._post(call, body, left, stream=False)
            headers = _lowered(answer.headers)
            try:
                return Received(read_json(answer.content), headers)
            except ValueError as error:
                raise malformed(headers) from error

    async def _stream(self, call: Call, body: bytes, left: float) -> Received:
        async with asyncio.timeout(left):
            answer = await self._post(call, body, left, stream=True)
            try:
                headers = _lowered(answer.headers)
                gathering = Gathering(headers)
                async for piece in answer.aiter_bytes():
                    gathering.feed(piece)
                return Received(gathering.message(), headers)
            finally:
                await answer.aclose()

    async def _post(self, call: Call, body: bytes, left: float, stream: bool) -> "httpx2.Response":
        """One request by the SDK, with a body that is JSON already and an answer as it came.

        Its own way from parameters to bytes, and from bytes to objects, costs as much again as the request.
        """
        import httpx2

        client = await self.connection.client()
        timeout = httpx2.Timeout(left, connect=min(left, _CONNECT_SECONDS))
        options: RequestOptions = {"headers": _headers(call), "timeout": timeout}
        return await client.post(
            "/v1/messages", cast_to=httpx2.Response, content=body, options=options, stream=stream, stream_cls=None
        )


def _build(settings: ClientSettings) -> "AsyncAnthropic":
    import anthropic
    import httpx2

    if not settings.api_key:
        raise Unavailable("no key for the model; set ANTHROPIC_API_KEY, or use the model simulated")
    most = settings.concurrency + _SPARE_CONNECTIONS
    limits = httpx2.Limits(max_connections=most, max_keepalive_connections=most)
    return anthropic.AsyncAnthropic(
        api_key=settings.api_key,
        # Said outright: without it the SDK takes an empty ANTHROPIC_BASE_URL for an address.
        base_url=settings.base_url or ANTHROPIC,
        max_retries=0,  # we try again ourselves: bounded, through the hooks, and without sleeping for an hour
        http_client=anthropic.DefaultAioHttpClient(limits=limits),
        open_telemetry=False,
    )


def _body(params: Mapping[str, Any]) -> bytes:
    try:
        return to_json(params)
    except PydanticSerializationError:
        return to_json(clean(dict(params)))  # half a character, from a prompt


def _headers(call: Call) -> dict[str, str]:
    return {"x-assay-run": call.label} if call.label else {}


def _lowered(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
