"""The HTTP server: connections, routes, keys, and the control endpoints.

POST /v1/messages, /v1/messages/count_tokens             GET /v1/models, /v1/models/{id}
POST|GET /v1/messages/batches, GET|DELETE …/{id}, POST …/{id}/cancel, GET …/{id}/results
GET  /stats, /control/requests     POST /control/faults, /control/settings, /control/reset     DELETE /control/faults
"""

import asyncio
import contextlib
import itertools

from simulator.batch_api import BatchApi
from simulator.batches import Batches
from simulator.control import Control
from simulator.messages import Messages
from simulator.rules import Refused
from simulator.settings import Settings
from simulator.stats import Stats
from simulator.wire import (
    MAX_HEAD_BYTES,
    BadWire,
    Cut,
    Reply,
    Request,
    error_reply,
    json_reply,
    read_request,
    write_half,
    write_reply,
)

MARK = {"x-assay-simulated": "1", "anthropic-organization-id": "org_simulated"}
MODEL_CARD = {
    "type": "model",
    "id": "simulated",
    "display_name": "Simulated",
    "created_at": "2026-01-01T00:00:00Z",
    "lifecycle": "active",
    "line": None,
    "max_input_tokens": 200_000,
    "max_tokens": 64_000,
    "deprecated_at": None,
    "retires_at": None,
    "capabilities": None,
}


class Server:
    """A simulator on one event loop."""

    def __init__(self, settings: Settings) -> None:
        self.stats = Stats()
        self.messages = Messages(settings, self.stats)
        self.control = Control(self.messages)
        self.url = ""
        batches = Batches(self.messages.batch_result, self.stats.batches)
        self.batch_api = BatchApi(batches, lambda: self.url, lambda: self.messages.settings.batch_seconds)
        self._numbers = itertools.count(1)
        self._open: set[asyncio.StreamWriter] = set()

    async def listen(self, host: str, port: int) -> asyncio.Server:
        """Start to listen; the url is known afterwards."""
        server = await asyncio.start_server(self._connection, host, port, limit=MAX_HEAD_BYTES, backlog=4096)
        bound = server.sockets[0].getsockname()
        self.url = f"http://{bound[0]}:{bound[1]}"
        return server

    def hang_up(self) -> None:
        """Close every connection, also those whose answer never comes."""
        for writer in list(self._open):
            writer.transport.abort()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        self.stats.connections += 1
        try:
            while await self._one_request(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError, TimeoutError):
            writer.transport.abort()  # the client has gone, or we stop
        except (BadWire, ValueError) as error:
            with contextlib.suppress(ConnectionError):
                await write_reply(writer, error_reply(400, "invalid_request_error", str(error)))
        except Cut:
            writer.transport.abort()
        finally:
            self._open.discard(writer)
            writer.close()

    async def _one_request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        request = await read_request(reader)
        if request is None:
            return False
        counted = request.path.startswith("/v1/")
        status = 0
        if counted:
            self.stats.arrive(_shape(request.path))
        try:
            reply = await self._reply(request)
            cut = reply.headers.pop("x-cut", None)
            await (write_half(writer, reply) if cut else write_reply(writer, reply))
            status = reply.status
        finally:
            if counted:
                self.stats.leave(status)
        return request.headers.get("connection", "").lower() != "close"

    async def _reply(self, request: Request) -> Reply:
        try:
            reply = await self._routed(request)
        except Refused as refused:
            reply = error_reply(400, "invalid_request_error", str(refused))
        headers = {**MARK, "request-id": f"req_simulated_{next(self._numbers):010d}", **reply.headers}
        if request.path == "/v1/messages":
            headers = {**self.messages.limit.headers(), **headers}
        return Reply(reply.status, reply.body, headers, reply.pieces)

    async def _routed(self, request: Request) -> Reply:
        if not request.path.startswith("/v1/"):
            return self.control.route(request)
        self.control.remember(request)
        refused = _refused_key(request)
        if refused:
            return refused
        route = (request.method, request.path)
        if route == ("POST", "/v1/messages"):
            return await self.messages.create(request)
        if route == ("POST", "/v1/messages/count_tokens"):
            return await self.messages.count_tokens(request)
        if request.path.startswith("/v1/messages/batches"):
            return self.batch_api.route(request)
        if request.method == "GET" and request.path.startswith("/v1/models"):
            return _models(request.path)
        return error_reply(404, "not_found_error", f"no such endpoint: {request.method} {request.path}")


def _shape(path: str) -> str:
    parts = path.split("/")
    return "/".join("{id}" if part.startswith("msgbatch_") else part for part in parts)


def _refused_key(request: Request) -> Reply | None:
    bearer = request.headers.get("authorization", "")
    key = bearer.removeprefix("Bearer ").strip() or request.headers.get("x-api-key", "")
    if not key or key.startswith("invalid"):
        return error_reply(401, "authentication_error", "invalid x-api-key or bearer token")
    if "anthropic-version" not in request.headers:
        return error_reply(400, "invalid_request_error", "anthropic-version: header is required")
    return None


def _models(path: str) -> Reply:
    name = path.removeprefix("/v1/models").strip("/")
    if name:
        return json_reply(200, {**MODEL_CARD, "id": name})
    return json_reply(200, {"data": [MODEL_CARD], "has_more": False, "first_id": "simulated", "last_id": "simulated"})
