"""Who asks: the bearer token, its scope and its rate; without any token made, only this machine."""

import ipaddress
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Annotated, Any, cast

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.concurrency import run_in_threadpool

from api.errors import TooMany
from service.bootstrap import Parts
from service.tokens import Caller, Scope, Unauthorized

_BEARER = HTTPBearer(auto_error=False, description="A token of `assay token create`.")
_EVERYTHING = frozenset(Scope)
_MOST_CALLERS = 10_000
_SCOPES: dict[Callable[..., Any], Scope] = {}  # what each of our checks asks for


def parts_of(request: Request) -> Parts:
    """The parts of this process."""
    return cast(Parts, request.app.state.parts)


PartsHere = Annotated[Parts, Depends(parts_of)]


class Rate:
    """So many requests a minute for each caller, as a bucket that fills steadily."""

    def __init__(self, per_minute: int, clock: Callable[[], float] = time.monotonic, whose: str = "this token") -> None:
        self._per_minute = per_minute
        self._whose = whose
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}
        self._lock = threading.Lock()

    def take(self, who: str) -> None:
        """One request of somebody; refused with the time to wait when the bucket is empty, which costs nothing."""
        now = self._clock()
        with self._lock:
            level = self._level(who, now)
            self._buckets[who] = (level - 1 if level >= 1 else level, now)
        if level < 1:
            wait = (1 - level) * 60 / self._per_minute
            raise TooMany(f"{self._whose} may ask {self._per_minute} times a minute; come again in {wait:.1f} s", wait)

    def _level(self, who: str, now: float) -> float:
        """How full somebody's bucket is by now."""
        if len(self._buckets) > _MOST_CALLERS:
            self._buckets.clear()
        level, when = self._buckets.get(who, (float(self._per_minute), now))
        return min(float(self._per_minute), level + (now - when) * self._per_minute / 60)


def recognise(
    request: Request, parts: PartsHere, shown: Annotated[HTTPAuthorizationCredentials | None, Depends(_BEARER)]
) -> Caller:
    """The caller of this request, within its rate; known already where a body was to be read first."""
    known: Caller | None = request.scope.get("assay_caller")
    if known is not None:
        return known
    try:
        caller = _caller(request, parts, shown)
    except Unauthorized:
        # A good token always passes: behind a proxy many share one address.
        request.app.state.strangers.take(request.client.host if request.client else "")
        raise
    request.scope["assay_caller"] = caller
    request.app.state.rate.take(caller.token_id or "loopback")
    return caller


def _caller(request: Request, parts: Parts, shown: HTTPAuthorizationCredentials | None) -> Caller:
    if shown is not None:
        return parts.tokens.recognise(shown.credentials)
    if parts.tokens.are_needed():
        raise Unauthorized("this API needs a token; send it as `Authorization: Bearer <token>`")
    _refuse_strangers(request)
    return Caller(parts.settings.team, _EVERYTHING)


def _refuse_strangers(request: Request) -> None:
    """Without tokens only programs of this machine are let in, and no web page that a browser happens to show."""
    client = request.client.host if request.client else ""
    if not is_loopback(client) or not is_loopback(request.url.hostname or ""):
        raise Unauthorized("without tokens this API answers to this machine alone; make one with `assay token create`")
    origin = request.headers.get("origin")
    if origin is not None and origin != f"{request.url.scheme}://{request.url.netloc}":
        raise Unauthorized("without tokens this API does not answer to pages of other sites")


def is_loopback(host: str) -> bool:
    """Whether a host is this machine, by name or address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _with(scope: Scope) -> Callable[[Caller], Caller]:
    def check(caller: Annotated[Caller, Depends(recognise)]) -> Caller:
        caller.require(scope)
        return caller

    _SCOPES[check] = scope
    return check


class GuardedRoute(APIRoute):
    """A route that reads nothing of a body from those who may not ask: the framework reads bodies before all else."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The framework's, behind the question who asks."""
        handle = super().get_route_handler()
        needed = [_SCOPES[one.call] for one in self.dependant.dependencies if one.call in _SCOPES]
        if self.body_field is None:
            return handle

        async def guarded(request: Request) -> Response:
            shown = await _BEARER(request)
            caller = await run_in_threadpool(recognise, request, parts_of(request), shown)
            for scope in needed:
                caller.require(scope)
            return await handle(request)

        return guarded


Reader = Annotated[Caller, Depends(_with(Scope.READ))]
Submitter = Annotated[Caller, Depends(_with(Scope.SUBMIT))]
Administrator = Annotated[Caller, Depends(_with(Scope.ADMIN))]
