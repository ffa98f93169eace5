"""One event loop in a thread of its own: all threads of a process share it, and with it one pool of connections.

Measured against one synchronous client for all threads: about half the CPU per call (docs/benchmarks/executor.md).
"""

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """Runs coroutines for threads that wait; starts on first use, again in a forked child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Wait for a coroutine's result; it ends with the caller's own deadline inside it."""
        return asyncio.run_coroutine_threadsafe(work, self.loop()).result()

    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop of this process."""
        if self._loop is None or self._pid != os.getpid():
            self._start()
        assert self._loop is not None
        return self._loop

    def stop(self) -> None:
        """End the loop; what still runs on it is cancelled."""
        with self._lock:
            loop, self._loop = self._loop, None
            if loop is None or self._pid != os.getpid():
                return
            asyncio.run_coroutine_threadsafe(_cancel_all(), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            loop.close()

    def _start(self) -> None:
        if self._pid != os.getpid():
            # After a fork nobody else runs here, and the lock may have been copied while held.
            self._lock, self._loop, self._pid = threading.Lock(), None, os.getpid()
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=loop.run_forever, name="models", daemon=True)
                self._thread.start()
                self._loop = loop


async def _cancel_all() -> None:
    mine = asyncio.current_task()
    others = [task for task in asyncio.all_tasks() if task is not mine]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
