"""What goes wrong, as problem documents (RFC 9457): one table from the error tree to HTTP."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from service import log
from service.errors import AssayError, BadInput, Conflict, NotFound, Unavailable
from service.sandbox.archive import BadArchive
from service.submitting import Refused
from service.tokens import Forbidden, Unauthorized

MEDIA_TYPE = "application/problem+json"


class TooLarge(BadInput):
    """The request, or its archive, is over the cap."""


class TooMany(BadInput):
    """The token asked too often; `retry_after_seconds` says when to come again."""

    def __init__(self, message: str, retry_after_seconds: float) -> None:
        self.retry_after_seconds = retry_after_seconds
        super().__init__(message)


@dataclass(frozen=True)
class Kind:
    """One kind of problem."""

    name: str
    status: int
    title: str
    remedy: str


# The first class that fits counts: special ones stand above general ones.
TABLE: tuple[tuple[type[Exception], Kind], ...] = (
    (
        Unauthorized,
        Kind(
            "unauthorized",
            401,
            "a token is needed",
            "send `Authorization: Bearer <token>`; make one with `assay token create`",
        ),
    ),
    (Forbidden, Kind("forbidden", 403, "the token is not good for this", "use a token with the scope named")),
    (
        NotFound,
        Kind("not-found", 404, "there is no such thing, or it is not yours", "check the id and the team of your token"),
    ),
    (Conflict, Kind("conflict", 409, "it is not in a state that allows this", "look at its state, then try again")),
    (TooLarge, Kind("too-large", 413, "the request is too large", "send less, or ask for a higher cap")),
    (TooMany, Kind("too-many", 429, "too many requests", "wait as long as Retry-After says")),
    (Refused, Kind("suite-refused", 422, "the suite cannot be run", "correct every error of the list")),
    (BadArchive, Kind("bad-archive", 422, "the archive is refused", "pack plain files and folders only, within caps")),
    (BadInput, Kind("bad-input", 422, "what was sent cannot be used", "correct what the detail names")),
    (Unavailable, Kind("unavailable", 503, "a part of the installation does not answer", "try again later")),
    (AssayError, Kind("internal", 500, "something broke", "give the instance to who runs this installation")),
)
_INTERNAL = TABLE[-1][1]
_VALIDATION = Kind("invalid", 422, "the request does not have the form it should", "correct every place of the list")
_BY_STATUS = {kind.status: kind for _, kind in reversed(TABLE)}
_HTTP = {
    400: Kind("malformed", 400, "the request cannot be read", "send it as the API's description says"),
    404: Kind("not-found", 404, "there is no such page", "see /v1/openapi.json for what there is"),
    405: Kind("method", 405, "this page does not know that method", "use one that the Allow header names"),
    415: Kind("media-type", 415, "this form of content is not understood", "use one that the API's description names"),
    416: Kind("range", 416, "the file does not have that range", "ask for a range inside the file"),
}


def kind_of(error: Exception) -> Kind:
    """Which kind of problem an exception is."""
    return next((kind for cls, kind in TABLE if isinstance(error, cls)), _INTERNAL)


def problem(
    request: Request,
    kind: Kind,
    detail: str,
    errors: list[dict[str, str]] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The answer that tells a problem."""
    body: dict[str, Any] = {
        "type": f"urn:assay:problem:{kind.name}",
        "title": kind.title,
        "status": kind.status,
        "detail": detail,
        "remedy": kind.remedy,
        "instance": f"urn:assay:request:{request.scope.get('request_id', '')}",
    }
    if errors is not None:
        body["errors"] = errors
    # Escaped: a detail may quote what somebody sent, and that need not be text.
    return Response(json.dumps(body), kind.status, headers, media_type=MEDIA_TYPE)


def install(app: FastAPI) -> None:
    """Let every error of ours and of FastAPI end as a problem document; the envelope does so for nobody's."""
    app.add_exception_handler(AssayError, _ours)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)


def _ours(request: Request, error: Exception) -> Response:
    kind = kind_of(error)
    if kind.status >= 500:
        log.warning("request failed", request=request.scope.get("request_id"), reason=str(error))
    errors = None
    if isinstance(error, Refused):
        errors = [{"path": one.path, "message": one.message, "code": one.code} for one in error.findings]
    return problem(request, kind, str(error), errors, _headers(error, kind))


def _headers(error: Exception, kind: Kind) -> dict[str, str]:
    if kind.status == 401:
        return {"WWW-Authenticate": 'Bearer realm="assay"'}
    if kind.status in (429, 503):
        return {"Retry-After": str(max(1, round(getattr(error, "retry_after_seconds", 2.0))))}
    return {}


def _invalid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    return invalid(request, list(error.errors()))


def invalid(request: Request, found: list[Any]) -> Response:
    """Every place of a request that has the wrong form."""
    errors = [
        {"path": json_path(one["loc"]), "message": str(one["msg"]).lower(), "code": str(one["type"])}
        for one in found[:50]
    ]
    first = errors[0]
    return problem(request, _VALIDATION, f"{first['path'] or 'the request'}: {first['message']}", errors)


def json_path(location: tuple[Any, ...]) -> str:
    """evals[2].prompt for ("body", "evals", 2, "prompt"); query and path parameters by their name."""
    parts = location[1:] if location and location[0] in ("body", "query", "path", "header") else location
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts).lstrip(".")


def _http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    fallback = Kind("http", error.status_code, "the request cannot be answered", "see the detail")
    kind = _HTTP.get(error.status_code) or _BY_STATUS.get(error.status_code) or fallback
    headers = {"Allow": _allowed(request)} if error.status_code == 405 else error.headers
    return problem(request, kind, str(error.detail).lower().rstrip("."), headers=headers)


def _allowed(request: Request) -> str:
    """All methods of a page: the framework names those of the first route alone."""
    path = getattr(request.scope.get("route"), "path", "")
    verbs = request.app.openapi()["paths"].get(path, {"get": {}})
    return ", ".join(sorted(verb.upper() for verb in verbs))


def broken(request: Request, error: Exception) -> Response:
    """The answer when something broke; to be asked for while the exception is handled, or the log lacks its trace."""
    log.error("request broke", with_traceback=True, request=request.scope.get("request_id"), kind=type(error).__name__)
    return problem(request, _INTERNAL, "an error that nobody foresaw; the log of the API has the details")
