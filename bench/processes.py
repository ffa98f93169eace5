"""Processes under measurement: what whole families of them use, and how they are ended, by pid."""

import threading
import time
from collections.abc import Callable, Iterable

import psutil


def family(pid: int) -> list[psutil.Process]:
    """A process and everything below it; empty when it is gone."""
    try:
        first = psutil.Process(pid)
        return [first, *first.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def cpu_seconds(pids: Iterable[int]) -> float:
    """Processor time of families, children that ended and were waited for included."""
    total = 0.0
    for pid in pids:
        for process in family(pid):
            try:
                times = process.cpu_times()
            except psutil.Error:
                continue
            total += times.user + times.system + times.children_user + times.children_system
    return total


def mebibytes(pids: Iterable[int]) -> float:
    """Memory of families, pages that several share divided among them (PSS)."""
    total = 0
    for pid in pids:
        for process in family(pid):
            try:
                total += process.memory_full_info().pss
            except psutil.Error:
                continue
    return total / 2**20


def kill(pids: Iterable[int]) -> None:
    """SIGKILL to whole families, and wait until they are gone."""
    doomed = [process for pid in pids for process in family(pid)]
    for process in doomed:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    # Ours are reaped here; a grandchild is reaped by whoever took it over.
    psutil.wait_procs(doomed, timeout=10)


class Watch:
    """Looks again and again at a figure in a thread of its own, and keeps the highest."""

    def __init__(self, look: Callable[[], float], every_seconds: float = 0.5) -> None:
        self.most = 0.0
        self._look = look
        self._every_seconds = every_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(10)

    def _run(self) -> None:
        while not self._stop.is_set():
            self.most = max(self.most, self._look())
            self._stop.wait(self._every_seconds)


def wait_until(is_so: Callable[[], bool], seconds: float, what: str, every_seconds: float = 0.05) -> None:
    """Wait, but not for ever."""
    deadline = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(every_seconds)
