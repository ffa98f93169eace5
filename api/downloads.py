"""Files for people and programs: ranges, types we vouch for, and everything active as an attachment."""

import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import IO
from urllib.parse import quote

from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.responses import Response, StreamingResponse

# What a browser shows and never runs. Everything else is offered for saving.
_SHOWN = {
    ".md": "text/plain; charset=utf-8",
    ".txt": "text/plain; charset=utf-8",
    ".log": "text/plain; charset=utf-8",
    ".csv": "text/plain; charset=utf-8",
    ".jsonl": "text/plain; charset=utf-8",
    ".json": "application/json",
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
_SAVED = "application/octet-stream"
# The types that an answer with a file can have, for its description.
FILE_TYPES = sorted({_SAVED, *(kind.partition(";")[0] for kind in _SHOWN.values())})
STRICT_POLICY = "default-src 'none'; frame-ancestors 'none'; sandbox"
# Our own report: its style and pictures are inside, and nothing in it runs.
PAGE_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; sandbox"
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_SPOOL_BYTES = 4 * 2**20
_CHUNK = 2**18


def content(request: Request, data: bytes, name: str, sha256: str) -> Response:
    """The bytes of an artifact, or the range of them that was asked for."""
    media_type = _SHOWN.get(PurePosixPath(name).suffix.lower())
    headers = {
        "ETag": f'"{sha256}"',
        "Accept-Ranges": "bytes",
        "Content-Security-Policy": STRICT_POLICY,
        "Content-Disposition": disposition(name, is_shown=media_type is not None),
    }
    if request.headers.get("if-none-match") == headers["ETag"]:
        return Response(status_code=304, headers=headers)
    found = asked_range(request.headers.get("range"), len(data), request.headers.get("if-range"), headers["ETag"])
    kind = media_type or _SAVED
    if found is None:
        return Response(data, headers=headers, media_type=kind)
    first, last = found
    headers["Content-Range"] = f"bytes {first}-{last}/{len(data)}"
    return Response(data[first : last + 1], 206, headers, kind)


def asked_range(asked: str | None, size: int, only_if: str | None, etag: str) -> tuple[int, int] | None:
    """First and last byte of the one range asked for; None for the whole, as for what we do not understand."""
    match = _RANGE.fullmatch(asked or "")
    if match is None or (only_if is not None and only_if != etag) or match.groups() == ("", ""):
        return None
    first, last = match.groups()
    start = int(first) if first else max(0, size - int(last))
    end = min(size - 1, int(last)) if first and last else size - 1
    if start >= size or (first and last and int(last) < start):
        raise HTTPException(416, f"the file has {size} bytes", {"Content-Range": f"bytes */{size}"})
    return start, end


def disposition(name: str, is_shown: bool) -> str:
    """How a browser should treat the file, with its name in letters any header carries."""
    base = PurePosixPath(name).name or "file"
    plain = re.sub(r"[^A-Za-z0-9._-]", "_", base)
    encoded = quote(base.encode("utf-8", "replace"), safe="")
    return f"{'inline' if is_shown else 'attachment'}; filename=\"{plain}\"; filename*=UTF-8''{encoded}"


def built(build: Callable[[IO[bytes]], None], media_type: str, name: str, policy: str = STRICT_POLICY) -> Response:
    """A file that is made for this request, on disk once it is large."""
    file: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=_SPOOL_BYTES)  # noqa: SIM115  closed when it was sent
    try:
        build(file)
    except BaseException:
        file.close()
        raise
    headers = {
        "Content-Length": str(file.tell()),
        "Content-Security-Policy": policy,
        "Content-Disposition": disposition(name, is_shown=media_type.startswith("text/html")),
    }
    return StreamingResponse(_chunks(file), headers=headers, media_type=media_type)


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    with file:
        file.seek(0)
        while chunk := file.read(_CHUNK):
            yield chunk
