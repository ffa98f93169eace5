"""Regexes and JSON of strangers, in child processes that can be killed: Python's own `re`, with time and memory caps.

Children are kept and used again: a search costs microseconds, a kill costs one new process. Any number of threads may
ask at once; each gets a child of its own. After a fork new children are made.
"""

import contextlib
import os
import select
import signal
import struct
import subprocess
import sys
import threading
from dataclasses import dataclass
from json import dumps, loads
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pydantic import JsonValue

from service.checks.verdict import Undecided

MAX_PATTERN_CHARS = 2_000
_CHILD = str(Path(__file__).with_name("engine_child.py"))
_PATIENCE = 10  # times the processor time that a child may take by the clock, on a busy machine
_GRACE_SECONDS = 5.0  # and for loading, sending and receiving


@dataclass(frozen=True)
class Hit:
    """In which of the texts a regex matched, on which line, and what."""

    number: int
    line: int
    text: str


class Engine:
    """A pool of children; close it, or let it end with the process. `seconds` are of processor time, per request."""

    def __init__(self, seconds: float = 2.0, memory_bytes: int = 512 << 20) -> None:
        self.seconds = seconds
        self._memory_bytes = memory_bytes
        self._lock = threading.Lock()
        self._idle: list[subprocess.Popen[bytes]] = []
        self._owner = os.getpid()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the children that wait."""
        with self._lock:
            idle, self._idle = self._idle, []
        for child in idle:
            _kill(child)

    def regex_problem(self, pattern: str) -> str | None:
        """Why a pattern is no regex, with its position; None if it is one."""
        if len(pattern) > MAX_PATTERN_CHARS:
            return f"the regex has {len(pattern)} characters, more than {MAX_PATTERN_CHARS}"
        reply = self._ask({"do": "compile", "pattern": pattern})
        if "problem" not in reply:
            return None
        place = f" at position {reply['position']}" if reply["position"] is not None else ""
        return f"the regex is not valid{place}: {reply['problem']}"

    def search(self, pattern: str, texts: list[str]) -> Hit | None:
        """The first match in some texts; raises Undecided when all of it takes too long or too much."""
        reply = self._ask({"do": "search", "pattern": pattern, "texts": texts})
        return None if reply["number"] is None else Hit(reply["number"], reply["line"], reply["found"])

    def search_lines(self, pattern: str, texts: list[str]) -> list[list[int]]:
        """For each text the numbers of the lines that match, each line for itself; raises Undecided likewise."""
        return list(self._ask({"do": "search_lines", "pattern": pattern, "texts": texts})["lines"])

    def json_problem(self, text: str) -> str | None:
        """Why a text is not JSON; None if it is."""
        return self._ask({"do": "parse_json", "text": text}).get("problem")

    def look_up(self, text: str, keys: list[str | int], equals: JsonValue) -> dict[str, Any]:
        """`problem`, or whether the place `exists`, its `value` in short and whether it is `equal`."""
        return self._ask({"do": "look_up", "text": text, "keys": keys, "equals": equals})

    def schema_problem(self, schema: JsonValue) -> str | None:
        """Why a value is no JSON Schema; None if it is one."""
        problem = self._ask({"do": "check_schema", "schema": schema, "sys_path": sys.path}).get("problem")
        return f"the schema is not valid: {problem}" if problem else None

    def validate(self, text: str, schema: JsonValue) -> dict[str, Any]:
        """`problem`, or the first `errors` and how many `more`."""
        return self._ask({"do": "validate", "text": text, "schema": schema, "sys_path": sys.path})

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        child = self._take()
        try:
            reply = _converse(child, dumps(request).encode(), self.seconds * _PATIENCE + _GRACE_SECONDS)
        except BaseException:
            _kill(child)
            raise
        if reply is None:
            raise Undecided(_why_gone(child, self.seconds))
        with self._lock:
            self._idle.append(child)
        if "gave_up" in reply:
            raise Undecided(str(reply["gave_up"]))
        return reply

    def _take(self) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._owner != os.getpid():  # we were forked: those children are our parent's
                self._owner, self._idle = os.getpid(), []
            while self._idle:
                child = self._idle.pop()
                if child.poll() is None:
                    return child
                _kill(child)
        return subprocess.Popen(
            [sys.executable, "-I", "-S", _CHILD, str(self.seconds), str(self._memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            bufsize=0,
        )


def _converse(child: subprocess.Popen[bytes], request: bytes, seconds: float) -> dict[str, Any] | None:
    """Send one request and read its answer; None if the child ended or had to be ended."""
    assert child.stdin and child.stdout
    try:
        _send(child.stdin.fileno(), struct.pack(">I", len(request)) + request)
        if not _is_ready(child.stdout.fileno(), seconds):
            return None
        head = _receive(child.stdout.fileno(), 4)
        content = _receive(child.stdout.fileno(), struct.unpack(">I", head)[0])
    except (BrokenPipeError, EOFError):
        return None
    return dict(loads(content))


def _is_ready(pipe: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(pipe, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def _send(pipe: int, content: bytes) -> None:
    view = memoryview(content)
    while view:
        view = view[os.write(pipe, view) :]


def _receive(pipe: int, size: int) -> bytes:
    content = bytearray()
    while len(content) < size:
        chunk = os.read(pipe, size - len(content))
        if not chunk:
            raise EOFError
        content += chunk
    return bytes(content)


def _why_gone(child: subprocess.Popen[bytes], seconds: float) -> str:
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(timeout=0.5)  # it ended by itself, or it never answered
    _kill(child)
    if child.returncode in (-signal.SIGPROF, -signal.SIGKILL):
        return f"timed out after {seconds:g} s"
    return f"broke the process it ran in (code {child.returncode})"


def _kill(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.kill()
    child.wait()
    for stream in filter(None, (child.stdin, child.stdout)):
        stream.close()
