"""A door to the model for a program that brings its own client, such as an agent's command line.

The program runs in a sandbox without network and without our key. It talks to a socket that is shown to it; here we
put the key in, go through limiter, budget and ledger as every call does, and pass the answer on as it comes.
"""

import asyncio
import hashlib
import hmac
import json
import secrets
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from service.errors import AssayError
from service.models.attempts import SIMULATED_HEADER
from service.models.client import ANTHROPIC, Connection, ModelClient
from service.models.failures import Failure, failure_of_answer
from service.models.passing import MESSAGES, Allowance, asked_params, check_model, check_run, upstream_path
from service.models.port import Answer, Attempt, Call, Tokens
from service.models.sniffing import Sniffer

if TYPE_CHECKING:
    from aiohttp import ClientSession, web

MAX_BODY_BYTES = 64 * 2**20
_PASSED_UP = ("content-type", "accept", "anthropic-version", "anthropic-beta", "user-agent")
_PASSED_DOWN = ("content-type", "request-id", "retry-after", "x-should-retry", SIMULATED_HEADER)

Rewrite = Callable[[bytes], bytes]  # looks at a request before it leaves; raises StageFailed to stop the run


@dataclass
class _Try:
    """One request under way; number 0 is no call (counting tokens)."""

    number: int
    call: Call  # an object of its own, with the body that the program sent
    path: str  # where it goes, with its query
    started: float = field(default_factory=time.monotonic)
    ended: Attempt | None = None

    @property
    def seconds(self) -> float:
        """Since it came."""
        return time.monotonic() - self.started


class Gateway:
    """The door of one run; open while used as a context manager.

    `socket` is the file to show to the program, `token` what it must send as its key. `failure` is set while the
    last request ended without an answer that the program could use.
    """

    def __init__(self, client: ModelClient, call: Call, rewrite: Rewrite, allowance: Allowance | None = None) -> None:
        self._client = client
        self._call = call
        self._rewrite = rewrite
        self._allowance = allowance or Allowance()
        self._calls = 0
        self._tries: Counter[str] = Counter()
        self.token = secrets.token_urlsafe(24)
        self.passed: list[Answer] = []
        self.failure: AssayError | None = None

    def __enter__(self) -> "Gateway":
        # A socket's path has at most 107 characters, so it lies on top of the temporary folder.
        self._folder = Path(tempfile.mkdtemp(prefix="assay-gate-"))
        self._folder.chmod(0o711)
        self.socket = self._folder / f"{secrets.token_hex(8)}.sock"
        self._threads = ThreadPoolExecutor(4, "gateway")
        self._client.connection.background.run(self._open())
        self.socket.chmod(0o666)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._client.connection.background.run(self._close())
        self._threads.shutdown(wait=False)
        shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def max_retries(self) -> int:
        """How often the program may try again."""
        return self._client.connection.settings.patience.max_retries

    @property
    def tokens(self) -> Tokens:
        """What all answers used together."""
        return sum((one.tokens for one in self.passed), Tokens())

    async def _open(self) -> None:
        import aiohttp
        from aiohttp import web

        self._session: ClientSession = aiohttp.ClientSession(auto_decompress=True)
        app = web.Application(client_max_size=MAX_BODY_BYTES)
        app.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.UnixSite(self._runner, str(self.socket)).start()

    async def _close(self) -> None:
        await self._runner.cleanup()
        await self._session.close()

    async def _handle(self, request: "web.Request") -> "web.StreamResponse":
        if not hmac.compare_digest(_key(request), self.token):
            return _refusal(401, "authentication_error", "this door is not yours")
        path = upstream_path(request.path, request.query)
        if request.method == "POST" and path is not None:
            return await self._message(request, path)
        return _refusal(404, "not_found_error", f"{request.method} {request.path} does not pass here")

    async def _message(self, request: "web.Request", path: str) -> "web.StreamResponse":
        try:
            body = self._rewrite(await request.read())
            params = self._admitted(body)
            if params is None:
                return _refusal(400, "invalid_request_error", "the body is no request that can be read")
            if request.path != MESSAGES:
                return await self._forward(request, body, _Try(0, self._call, path))
            digest = hashlib.sha256(body).hexdigest()
            self._tries[digest] += 1
            return await self._hooked(request, body, _Try(self._tries[digest], self._asked(params), path))
        except AssayError as error:
            self.failure = error
            return _refusal(403, "permission_error", "the run was stopped")

    def _admitted(self, body: bytes) -> dict[str, Any] | None:
        """What is asked, counted; None if it cannot be read. Raises StageFailed for what may not be asked."""
        check_run(self._call, self._allowance, self._calls, self.tokens.total)
        params = asked_params(body)
        if params is not None:
            check_model(self._call, params.get("model"))
            self._calls += 1
        return params

    def _asked(self, params: dict[str, Any]) -> Call:
        """The call with what the program asks; without a sensible limit it is left to the provider to refuse."""
        return replace(self._call, params=params) if isinstance(params.get("max_tokens"), int) else replace(self._call)

    async def _hooked(self, request: "web.Request", body: bytes, one: _Try) -> "web.StreamResponse":
        """Send between the hooks, which may wait and therefore have threads of their own."""
        loop = asyncio.get_running_loop()
        entered = []
        try:
            for hook in self._client.attempts.hooks:
                await loop.run_in_executor(self._threads, hook.before, one.call, one.number)
                entered.append(hook)
            return await self._forward(request, body, one)
        finally:
            ended = one.ended or Attempt(one.number, None, {}, None, None, one.seconds, "not_sent")
            for hook in reversed(entered):
                await loop.run_in_executor(self._threads, hook.after, one.call, ended)

    async def _forward(self, request: "web.Request", body: bytes, one: _Try) -> "web.StreamResponse":
        import aiohttp

        reply: web.StreamResponse | None = None
        try:
            async with self._session.post(
                _upstream(self._client.connection) + one.path,
                data=body,
                headers=_headers_up(request, self._client.connection, self._call.label),
                timeout=aiohttp.ClientTimeout(self._call.timeout_seconds, sock_connect=5.0),
            ) as answer:
                if answer.status >= 400:
                    return await self._pass_error(answer.status, answer.headers, await answer.read(), one)
                sniffer = Sniffer(answer.headers.get("content-type", ""))
                reply = _reply(answer.status, answer.headers)
                await reply.prepare(request)
                async for piece in answer.content.iter_any():
                    sniffer.feed(piece)
                    await reply.write(piece)
                sniffer.end()
                self._note_answer(sniffer, answer.headers, one)
                return reply
        except (aiohttp.ClientError, TimeoutError, ConnectionError):
            failure = Failure("connection", "the connection failed or was cut", True)
            self._note_failure(failure, one)
            if reply is None:
                return _refusal(502, "api_error", "the model does not answer", self._is_last(failure, one))
            if request.transport:
                request.transport.abort()
            return reply

    async def _pass_error(self, status: int, headers: Any, body: bytes, one: _Try) -> "web.StreamResponse":
        from aiohttp import web

        failure = failure_of_answer(status, headers, _error_in(body))
        self._note_failure(failure, one)
        kept = {name: headers[name] for name in _PASSED_DOWN if name in headers}
        if self._is_last(failure, one):
            kept["x-should-retry"] = "false"
        return web.Response(status=status, body=body, headers=kept)

    def _is_last(self, failure: Failure, one: _Try) -> bool:
        """Whether the program must not try this again."""
        return self._client.attempts.pause(failure, max(1, one.number)) is None

    def _note_failure(self, failure: Failure, one: _Try) -> None:
        if one.number == 0:
            return
        told = (failure.status, failure.headers, None, None, one.seconds, failure.kind, failure.retry_after_seconds)
        one.ended = Attempt(one.number, *told)
        self.failure = failure.as_error(one.call)
        self._client.attempts.write_down(one.call, None, failure, one.number, one.seconds)

    def _note_answer(self, seen: Sniffer, headers: Any, one: _Try) -> None:
        if one.number == 0:
            return
        if seen.error is not None or not seen.is_complete:
            self._note_failure(failure_of_answer(200, headers, seen.error or {"type": "api_error"}), one)
            return
        lowered = {name.lower(): value for name, value in headers.items()}
        answer = Answer(
            id="",
            model=seen.model or one.call.model,
            content=(),
            stop_reason=seen.stop_reason or "",
            tokens=seen.tokens,
            cost_usd=self._client.prices.cost(one.call.model, seen.tokens),
            seconds=one.seconds,
            request_id=lowered.get("request-id"),
            simulated=lowered.get(SIMULATED_HEADER) == "1",
            attempts=one.number,
        )
        one.ended = Attempt(one.number, 200, lowered, answer.tokens, answer.cost_usd, one.seconds)
        self.failure = None
        self.passed.append(answer)
        self._client.attempts.write_down(one.call, answer, None, one.number)


def _key(request: "web.Request") -> str:
    bearer = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
    return request.headers.get("x-api-key", "") or bearer


def _upstream(connection: Connection) -> str:
    return (connection.settings.base_url or ANTHROPIC).rstrip("/")


def _headers_up(request: "web.Request", connection: Connection, label: str) -> dict[str, str]:
    kept = {name: request.headers[name] for name in _PASSED_UP if name in request.headers}
    kept["x-api-key"] = connection.settings.api_key or ""
    return {**kept, "x-assay-run": label} if label else kept


def _reply(status: int, headers: Any) -> "web.StreamResponse":
    from aiohttp import web

    return web.StreamResponse(status=status, headers={name: headers[name] for name in _PASSED_DOWN if name in headers})


def _refusal(status: int, kind: str, message: str, is_last: bool = True) -> "web.StreamResponse":
    from aiohttp import web

    body = {"type": "error", "error": {"type": kind, "message": message}}
    return web.json_response(body, status=status, headers={"x-should-retry": "false"} if is_last else {})


def _error_in(body: bytes) -> dict[str, Any]:
    try:
        error = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        return {}
    return error if isinstance(error, dict) else {}
