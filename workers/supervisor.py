"""Keeps worker processes alive: Celery workers may exit after a broker restart, ours come back."""

import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from types import FrameType

from service import log
from service.settings import Settings

_LONGEST_PAUSE = 10.0
_STEADY_SECONDS = 30.0


class Child:
    """One worker process, started again whenever it ends."""

    def __init__(self, role: str, concurrency: int | None, environment: Mapping[str, str] | None = None) -> None:
        self.role = role
        self._command = [sys.executable, "-m", "workers.process", role, *([str(concurrency)] if concurrency else [])]
        self._environment = environment
        self._pause = 0.5
        self._not_before = 0.0
        self._started = 0.0
        self.process: subprocess.Popen[bytes] | None = None

    def keep_alive(self) -> None:
        """Start it, or start it again after a pause that grows while it keeps ending."""
        now = time.monotonic()
        if self.process is None:
            if now >= self._not_before:
                self._start(now)
        elif (code := self.process.poll()) is not None:
            self._pause = 0.5 if now - self._started > _STEADY_SECONDS else min(_LONGEST_PAUSE, self._pause * 2)
            self._not_before = now + self._pause
            self.process = None
            log.warning("worker ended, starting again", role=self.role, code=code, in_seconds=self._pause)

    def _start(self, now: float) -> None:
        self.process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, env=self._environment)
        self._started = now
        log.info("worker started", role=self.role, pid=self.process.pid)

    def tell(self, how: int) -> None:
        """Send it a signal, if it lives."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)


def supervise(names: Sequence[str], concurrency: int | None, settings: Settings) -> None:
    """Run workers of these roles until SIGTERM or SIGINT; then let them end within the grace period."""
    children = [Child(name, concurrency) for name in names]
    stopping = _stop_on_signals()
    while not stopping:
        for child in children:
            child.keep_alive()
        time.sleep(0.1)
    for child in children:
        child.tell(signal.SIGTERM)
    _wait(children, settings.grace_seconds + 5)
    for child in children:
        child.tell(signal.SIGKILL)


def _stop_on_signals() -> list[int]:
    stopping: list[int] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        stopping.append(number)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    return stopping


def _wait(children: list[Child], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    for child in children:
        if child.process:
            try:
                child.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                log.warning("worker did not end in time", role=child.role)
