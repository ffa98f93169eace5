"""Figures of the whole installation, for those who run it: counted by the database, remembered for some seconds."""

import threading
import time

from service.queue import QUEUES, Broker
from service.storage.figures import Figures, count
from service.storage.store import Store, database_errors

_KEPT_SECONDS = 5.0


class Monitoring:
    """Counts, at most every few seconds, whoever asks."""

    def __init__(self, store: Store, broker: Broker) -> None:
        self._engine = store.engine
        self._broker = broker
        self._lock = threading.Lock()
        self._kept: tuple[float, Figures] | None = None

    def figures(self) -> Figures:
        """The figures, not older than some seconds."""
        with self._lock:
            if self._kept is None or time.monotonic() - self._kept[0] > _KEPT_SECONDS:
                with database_errors():
                    self._kept = (time.monotonic(), count(self._engine, self._depths()))
            return self._kept[1]

    def _depths(self) -> dict[str, int]:
        found = {queue: self._broker.depth(queue) for queue in QUEUES}
        return {queue: depth for queue, depth in found.items() if depth is not None}
