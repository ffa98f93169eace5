"""Where a worker waits for its turn: bounded, and one asker per flow and process."""

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from service.limits.port import Demand, Limiter, RetryLater

LEAST_SECONDS = 0.005  # a refusal that says "now" must not become a busy loop


@dataclass
class Gate:
    """Lets requests through at the limiter's pace; a wait longer than the patience hands the worker back."""

    limiter: Limiter
    patience_seconds: float = 20.0  # how long one request may stand here
    sleep: Callable[[float], None] = time.sleep
    clock: Callable[[], float] = time.monotonic
    _turnstiles: dict[str, threading.Lock] = field(default_factory=lambda: defaultdict(threading.Lock))
    _waited: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    _counting: threading.Lock = field(default_factory=threading.Lock)

    def enter(self, demand: Demand, patience_seconds: float | None = None) -> None:
        """Return when the request may leave; raises RetryLater if that is too far away."""
        patience = self.patience_seconds if patience_seconds is None else patience_seconds
        entered = self.clock()
        try:
            while self._wait_for_slot(demand, entered + patience) and self.limiter.paused_seconds(demand.model) > 0:
                # A pause began while we slept: that is how one 429 stops the fleet. Our slot is gone, take another.
                continue
        finally:
            with self._counting:
                self._waited[demand.model] += self.clock() - entered

    def take_waited(self, model: str) -> float:
        """Seconds that requests to a model stood here, in vain or not, since this was asked last."""
        with self._counting:
            return self._waited.pop(model, 0.0)

    def _wait_for_slot(self, demand: Demand, deadline: float) -> bool:
        """Ask until a slot is granted and sleep until it comes; says whether it slept."""
        # Who is refused stays in the turnstile: nobody of its flow overtakes it, and Redis hears one asker only.
        turnstile = self._turnstiles[f"{demand.model}/{demand.flow}"]
        if not turnstile.acquire(timeout=max(0.0, deadline - self.clock())):
            raise self._later(demand, self.patience_seconds)
        try:
            seconds = self._granted_in(demand, deadline)
        finally:
            turnstile.release()
        if seconds > 0:
            self.sleep(seconds)
        return seconds > 0

    def _granted_in(self, demand: Demand, deadline: float) -> float:
        while True:
            left = max(0.0, deadline - self.clock())
            turn = self.limiter.acquire(demand, left)
            if turn.granted:
                return turn.seconds
            # Many processes are refused at the same moment: a little spread keeps them apart.
            pause = max(LEAST_SECONDS, turn.seconds) * random.uniform(1.0, 1.1)  # noqa: S311 - no secret
            if pause > left:
                raise self._later(demand, turn.seconds)
            self.sleep(pause)

    def _later(self, demand: Demand, seconds: float) -> RetryLater:
        return RetryLater(seconds, f"model {demand.model} is busy; try again in {seconds:.1f} seconds")
