"""Watching a started command to its end: output, status, time and disk, whichever tier started it.

The process we started says how the command goes as JSON documents on a status pipe: {"child-pid": 7}, {"exit-code": 0}.
It holds the only writing end, so the pipe ends with it. No exit code means that the sandbox failed, not the command.
"""

import json
import os
import selectors
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from service.sandbox.port import Command, Finished, SandboxFailed
from service.sandbox.usage import DiskWatch

_TICK_SECONDS = 0.25
_FLOOD = 64  # times the output cap: more than that is no output but an attack
_GRACE_SECONDS = 10.0  # for the started process to go once told to stop
_CHUNK = 65_536


@dataclass
class Pipe:
    """One stream of the command, kept up to a cap."""

    fd: int
    cap: int
    kept: bytearray = field(default_factory=bytearray)
    seen: int = 0

    def pull(self) -> bool:
        """Read what is there now; False at the end of the stream."""
        try:
            chunk = os.read(self.fd, _CHUNK)
        except BlockingIOError:
            return True
        self.seen += len(chunk)
        self.kept += chunk[: max(0, self.cap - len(self.kept))]
        return bool(chunk)

    def drain(self) -> None:
        """Read what was written before the command was gone, without waiting for more."""
        while self.seen <= self.cap * _FLOOD:
            before = self.seen
            if not self.pull() or self.seen == before:
                return


@dataclass
class Watched:
    """A started command: its process, its pipes, and how to end all of it."""

    process: subprocess.Popen[bytes]
    stdout: Pipe
    stderr: Pipe | None
    status: Pipe
    stop: Callable[["Watched"], None]
    started: float = field(default_factory=time.monotonic)

    def said(self, key: str) -> int | None:
        """What the started process said under a key, if it did."""
        for document in _documents(bytes(self.status.kept)):
            if isinstance(value := document.get(key), int):
                return value
        return None


def watch(watched: Watched, command: Command, disk: DiskWatch) -> Finished:
    """Follow the command until it is gone, ending it when its time, output or disk is used up."""
    stopped_by = _follow(watched, watched.started + command.timeout_seconds, disk)
    pipes = [watched.stdout, *([watched.stderr] if watched.stderr else [])]
    for pipe in pipes:
        pipe.drain()
    exit_code = None if stopped_by else watched.said("exit-code")
    if exit_code is None and not stopped_by:
        raise SandboxFailed(f"the sandbox broke: {_last_words(pipes) or 'it said nothing'}")
    return Finished(
        exit_code=exit_code,
        stdout=bytes(watched.stdout.kept),
        stderr=bytes(watched.stderr.kept) if watched.stderr else b"",
        seconds=time.monotonic() - watched.started,
        truncated=any(pipe.seen > pipe.cap for pipe in pipes),
        stopped_by=stopped_by,
    )


def _follow(watched: Watched, deadline: float, disk: DiskWatch) -> str | None:
    """Read until the status pipe ends; why we ended the command, if we did."""
    stopped_by = None
    with selectors.DefaultSelector() as selector:
        for pipe in filter(None, (watched.stdout, watched.stderr, watched.status)):
            os.set_blocking(pipe.fd, False)
            selector.register(pipe.fd, selectors.EVENT_READ, pipe)
        while watched.status.fd in selector.get_map():
            _pull_ready(selector, min(_TICK_SECONDS, max(0.01, deadline - time.monotonic())))
            if stopped_by is None and (stopped_by := _reason_to_stop(watched, deadline, disk)):
                watched.stop(watched)
                deadline = time.monotonic()
            elif time.monotonic() > deadline + _GRACE_SECONDS:
                watched.process.kill()
                break
    return stopped_by


def _pull_ready(selector: selectors.BaseSelector, seconds: float) -> None:
    for key, _ in selector.select(seconds):
        if not key.data.pull():
            selector.unregister(key.fd)


def _reason_to_stop(watched: Watched, deadline: float, disk: DiskWatch) -> str | None:
    if b"exit-code" in watched.status.kept:
        return None  # it is over; only the pipes are still open
    if time.monotonic() >= deadline:
        return "timeout"
    if any(pipe and pipe.seen > pipe.cap * _FLOOD for pipe in (watched.stdout, watched.stderr)):
        return "output"
    return "disk" if disk.is_over() else None


def _documents(text: bytes) -> list[dict[str, object]]:
    documents = []
    for line in text.splitlines():
        try:
            found = json.loads(line)
        except ValueError:
            continue  # half a line so far
        if isinstance(found, dict):
            documents.append(found)
    return documents


def _last_words(pipes: list[Pipe]) -> str:
    """The end of what was written, for a message."""
    text = b"".join(bytes(pipe.kept) for pipe in pipes).decode("utf-8", "replace").strip()
    return text.splitlines()[-1][-300:] if text else ""
