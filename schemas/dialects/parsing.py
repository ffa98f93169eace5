"""Bytes to a JSON value, strictly: what another reader could understand otherwise is refused."""

import codecs
import json
import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from pydantic import JsonValue

from schemas.dialects.place import path_of
from schemas.findings import Finding, Level, Unreadable

MAX_BYTES = 10 * 1024 * 1024
MAX_LEVELS = 64

# utf-32 first: its mark begins with the one of utf-16.
_FOREIGN_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_SUSPICIOUS_ESCAPE = re.compile(r"\\u(?:[dD][89a-fA-F]|0000)")
_BRACKET_OR_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"|[\[\]{}]', re.DOTALL)


def parse(data: bytes) -> JsonValue:
    """The JSON value of a file; raises Unreadable with the place."""
    text = _decode(data)
    doubts = _Doubts()
    value: JsonValue = _load(text, doubts)
    if doubts.any or _SUSPICIOUS_ESCAPE.search(text) or _deeper_than(value, MAX_LEVELS):
        for path, code, message in _faults(value):
            _refuse(path, code, message)
    return value


def has_mark(data: bytes) -> bool:
    """Whether the file begins with a UTF-8 byte order mark, which says nothing and is skipped."""
    return data.startswith(codecs.BOM_UTF8)


class _Doubts:
    """Hooks of the JSON decoder that remember having met something we refuse."""

    def __init__(self) -> None:
        self.any = False

    def pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            self.any = True
            found = _Repeated(found)
            found.pairs = pairs
        return found

    def constant(self, text: str) -> "_NoNumber":
        self.any = True
        return _NoNumber(text)

    def floating(self, text: str) -> "float | _NoNumber":
        number = float(text)
        return number if math.isfinite(number) else self.constant(text)

    def integer(self, text: str) -> "int | _NoNumber":
        # Python refuses to convert very long integers, and no database holds more than 64 bits.
        number = int(text) if len(text) <= 20 else None
        return number if number is not None and -(2**63) <= number < 2**63 else self.constant(text[:25])


class _Repeated(dict[str, Any]):
    """An object that says one of its keys twice."""

    pairs: list[tuple[str, Any]]


class _NoNumber:
    """A number JSON does not have, or that no float can hold."""

    def __init__(self, text: str) -> None:
        self.text = text


def _refuse(path: str, code: str, message: str) -> NoReturn:
    raise Unreadable(Finding(level=Level.ERROR, path=path, message=message, code=code))


def _decode(data: bytes) -> str:
    """Text of UTF-8 bytes of a bearable size."""
    if len(data) > MAX_BYTES:
        _refuse("", "too_large", f"{len(data):,} bytes are more than the {MAX_BYTES // 1024 // 1024} MiB we read")
    for mark, name in _FOREIGN_MARKS:
        if data.startswith(mark):
            _refuse("1:1", "wrong_encoding", f"encoded as {name}; save it as utf-8")
    body = data[len(codecs.BOM_UTF8) :] if has_mark(data) else data
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        before = body[: error.start].decode("utf-8", "replace")
        _refuse(_line_and_column(before, len(before)), "wrong_encoding", "not utf-8 from here on; save it as utf-8")


def _load(text: str, doubts: _Doubts) -> Any:
    """The value, with what we refuse still in it."""
    if not text.strip():
        _refuse("1:1", "empty", "the file is empty")
    try:
        return json.loads(
            text,
            object_pairs_hook=doubts.pairs,
            parse_constant=doubts.constant,
            parse_float=doubts.floating,
            parse_int=doubts.integer,
        )
    except json.JSONDecodeError as error:
        reason = error.msg[:1].lower() + error.msg[1:]
        _refuse(f"{error.lineno}:{error.colno}", "broken_json", f"not JSON: {reason}")
    except RecursionError:
        _refuse(_first_too_deep(text), "too_deep", f"more than {MAX_LEVELS} levels deep")


def _line_and_column(text: str, position: int) -> str:
    line = text.count("\n", 0, position) + 1
    return f"{line}:{position - text.rfind(chr(10), 0, position)}"


def _first_too_deep(text: str) -> str:
    """Line and column of the bracket that goes one level too far."""
    level = 0
    for token in _BRACKET_OR_STRING.finditer(text):
        level += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token.group(), 0)
        if level > MAX_LEVELS:
            return _line_and_column(text, token.start())
    return "1:1"


def _deeper_than(value: JsonValue, levels: int) -> bool:
    """Whether the value nests further; never recurses further than that itself."""
    if isinstance(value, dict):
        return levels == 0 or any(_deeper_than(item, levels - 1) for item in value.values())
    if isinstance(value, list):
        return levels == 0 or any(_deeper_than(item, levels - 1) for item in value)
    return False


def _faults(value: Any) -> Iterator[tuple[str, str, str]]:
    """Path, code and message of everything we refuse, in document order."""
    stack: list[tuple[tuple[str | int, ...], Any]] = [((), value)]
    while stack:
        parts, item = stack.pop()
        fault = _fault_of(item, len(parts))
        if fault is not None:
            yield path_of(parts), *fault
        elif isinstance(item, dict):
            stack.extend(((*parts, name), child) for name, child in reversed(item.items()))
            # On top of the stack: a path through a bad name could not be written either.
            stack.extend((_named(parts, name), name) for name in item if not _storable(name))
        elif isinstance(item, list):
            stack.extend(((*parts, index), child) for index, child in reversed(list(enumerate(item))))


def _named(parts: tuple[str | int, ...], name: str) -> tuple[str | int, ...]:
    return (*parts, name.encode("utf-8", "replace").decode().replace("\0", "?"))


def _fault_of(item: Any, level: int) -> tuple[str, str] | None:
    """Code and message of what is wrong with one value itself."""
    if isinstance(item, dict | list) and level >= MAX_LEVELS:
        return "too_deep", f"more than {MAX_LEVELS} levels deep"
    if isinstance(item, _Repeated):
        return "duplicate_key", f"the key {json.dumps(_repeated_key(item))} is there twice; keep one"
    if isinstance(item, _NoNumber):
        return "no_number", f"{item.text} is not a number, or none that other programs can hold"
    if isinstance(item, str) and not _storable(item):
        return "bad_text", "text with a NUL character or half a surrogate pair cannot be stored; remove it"
    return None


def _repeated_key(item: _Repeated) -> str:
    seen: set[str] = set()
    return next(key for key, _ in item.pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]


def _storable(text: str) -> bool:
    """Databases and files take any text but these two."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)
