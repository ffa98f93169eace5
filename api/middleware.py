"""Around every request: an id, an access log line, a cap on the body, and headers that keep browsers careful."""

import secrets
import time
from collections.abc import Callable, MutableMapping
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.errors import broken
from service import log
from service.settings import Settings

# Called after every request with route, method, status and seconds.
Count = Callable[[str, str, int, float], None]
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}


class Envelope:
    """Gives every request an id and every answer its headers; writes one line when it is over."""

    def __init__(self, app: ASGIApp, count: Count) -> None:
        self._app = app
        self._count = count

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope["request_id"] = secrets.token_hex(8)
        began, status, has_begun = time.monotonic(), 500, False

        async def sending(message: Message) -> None:
            nonlocal status, has_begun
            if message["type"] == "http.response.start":
                status, has_begun = message["status"], True
                _add_headers(message, scope["request_id"])
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as error:
            answer = broken(Request(scope), error)
            if has_begun:
                raise  # so that the connection breaks, and nobody takes half an answer for a whole one
            await answer(scope, receive, sending)
        finally:
            self._tell(scope, status, time.monotonic() - began)

    def _tell(self, scope: Scope, status: int, seconds: float) -> None:
        route = getattr(scope.get("route"), "path", "none")
        self._count(route, scope["method"], status, seconds)
        facts: dict[str, Any] = {"request": scope["request_id"], "method": scope["method"], "route": route}
        facts |= {"path": _readable(scope), "client": (scope.get("client") or ("none",))[0]}
        caller = scope.get("assay_caller")
        if caller is not None:
            facts |= {"team": caller.team, "token": caller.prefix or "none"}
        log.info("request", **facts, status=status, seconds=round(seconds, 4))


def _add_headers(message: MutableMapping[str, Any], request_id: str) -> None:
    headers = MutableHeaders(raw=message["headers"])
    headers["X-Request-Id"] = request_id
    for name, value in _HEADERS.items():
        headers.setdefault(name, value)


def _readable(scope: Scope) -> str:
    """The path for a log line: foreign text must not break out of it."""
    return "".join(letter if letter.isprintable() and letter != " " else "?" for letter in scope["path"][:200])


class BodyCap:
    """Refuses a body that is too large before it is read whole."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request; what it says about its length is believed only when it is too much."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        cap = self._cap(headers)
        said = headers.get("content-length", "")
        read = int(said) if said.isascii() and said.isdigit() and int(said) > cap else 0

        async def receiving() -> Message:
            nonlocal read
            # Before the first byte is taken: a client that waits for "100 Continue" never sends the rest.
            if read > cap:
                _refuse(cap)
            message = await receive()
            read += len(message.get("body", b""))
            if read > cap:
                _refuse(cap)
            return message

        await self._app(scope, receiving, send)

    def _cap(self, headers: Headers) -> int:
        with_archive = headers.get("content-type", "").lower().startswith("multipart/")
        return self._settings.body_max_bytes + (self._settings.upload_max_bytes if with_archive else 0)


def _refuse(cap: int) -> None:
    raise HTTPException(413, f"the body is larger than {cap:,} bytes", {"Connection": "close"})
