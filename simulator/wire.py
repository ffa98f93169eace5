"""HTTP/1.1 by hand: just enough for the clients of the Messages API, so that a thousand open requests cost little.

Faults need the socket itself (an answer cut in the middle, a body that is no JSON), which frameworks hide.
"""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 300 * 1024 * 1024
REASONS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 413: "Payload Too Large"}


class BadWire(Exception):
    """What came over the connection is no request we can read."""


class Cut(Exception):
    """Close the connection in the middle of the answer."""


@dataclass(frozen=True)
class Request:
    """One HTTP request, read completely."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]  # names in lower case
    body: bytes

    def json(self) -> Any:
        """The body as JSON; raises ValueError."""
        return json.loads(self.body or b"null")


@dataclass(frozen=True)
class Reply:
    """An answer: a body, or pieces that are streamed."""

    status: int
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    pieces: AsyncIterator[bytes] | None = None


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """The next request of a connection, or None when the client has closed it."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        if error.partial.strip():
            raise BadWire("the request ends inside its headers") from error
        return None
    except asyncio.LimitOverrunError as error:
        raise BadWire("the headers are too long") from error
    method, target, headers = _parse_head(head)
    body = _decoded(await _read_body(reader, headers), headers.get("content-encoding", ""))
    parts = urlsplit(target)
    return Request(method, parts.path, dict(parse_qsl(parts.query)), headers, body)


def _parse_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    lines = head.decode("latin-1").split("\r\n")
    words = lines[0].split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise BadWire("this is no HTTP/1.1 request line")
    headers: dict[str, str] = {}
    for line in lines[1:]:
        name, colon, value = line.partition(":")
        if colon:
            headers[name.strip().lower()] = value.strip()
    return words[0], words[1], headers


async def _read_body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        return await _read_chunks(reader)
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > MAX_BODY_BYTES:
        raise BadWire(f"content-length {length[:20]} cannot be used")
    return await reader.readexactly(int(length))


async def _read_chunks(reader: asyncio.StreamReader) -> bytes:
    body = bytearray()
    while True:
        size = int((await reader.readline()).split(b";")[0].strip() or b"0", 16)
        body += await reader.readexactly(size)
        await reader.readline()
        if size == 0:
            return bytes(body)
        if len(body) > MAX_BODY_BYTES:
            raise BadWire("the body is too long")


def _decoded(body: bytes, encoding: str) -> bytes:
    try:
        if encoding == "gzip":
            return gzip.decompress(body)
        if encoding == "deflate":
            return zlib.decompress(body)
    except (OSError, zlib.error) as error:
        raise BadWire("the body does not match its content-encoding") from error
    return body


def json_reply(status: int, document: Any, headers: dict[str, str] | None = None) -> Reply:
    """An answer with a JSON body."""
    body = json.dumps(document).encode()
    return Reply(status, body, {"content-type": "application/json", **(headers or {})})


def error_reply(status: int, kind: str, message: str, **extra: Any) -> Reply:
    """An answer in the API's error form; `headers` and `error_code` may be given."""
    error: dict[str, Any] = {"type": kind, "message": message}
    if extra.get("error_code"):
        error["details"] = {"error_code": extra["error_code"]}
    return json_reply(status, {"type": "error", "error": error, "request_id": None}, extra.get("headers"))


async def write_reply(writer: asyncio.StreamWriter, reply: Reply) -> None:
    """Send an answer; raises Cut after the bytes that were to arrive before the cut."""
    if reply.pieces is None:
        writer.write(_head(reply, f"content-length: {len(reply.body)}") + reply.body)
        await writer.drain()
        return
    writer.write(_head(reply, "transfer-encoding: chunked"))
    async for piece in reply.pieces:
        writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        await writer.drain()
    writer.write(b"0\r\n\r\n")
    await writer.drain()


async def write_half(writer: asyncio.StreamWriter, reply: Reply) -> None:
    """Send the headers and half of the body, then cut."""
    writer.write(_head(reply, f"content-length: {len(reply.body)}") + reply.body[: len(reply.body) // 2])
    await writer.drain()
    raise Cut


def _head(reply: Reply, framing: str) -> bytes:
    lines = [f"HTTP/1.1 {reply.status} {REASONS.get(reply.status, 'Status')}", framing]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
