"""What stands still is sent again: leases that ran out, messages that were lost, batches nobody ended."""

import os
import socket

from service import log
from service.admission import choose
from service.queue import Broker
from service.settings import Settings
from service.storage.rows import Message
from service.storage.runs import OPEN_STAGES
from service.storage.store import Store


class Recovery:
    """Looks around; two of them at once do no harm."""

    def __init__(self, settings: Settings, store: Store, broker: Broker) -> None:
        self._settings = settings
        self._store = store
        self._broker = broker

    def sweep(self) -> int:
        """Repair everything that can be seen to stand still; gives the number of messages sent again."""
        expired, ended = self._store.dispatch.expired(self._settings.max_attempts)
        handed_back = self._store.dispatch.handed_back()
        lost = self._lost_messages()
        self._tell("leases ran out", expired)
        self._tell("messages were lost", lost)
        self._broker.send([*expired, *handed_back, *lost])
        self._broker.send(self._idle_comparisons())
        self._end_batches(ended)
        self.refill()
        return len(expired) + len(handed_back) + len(lost)

    def restart(self) -> int:
        """Send everything that was under way: for a broker that is known to be empty."""
        messages = self._store.dispatch.all_sent()
        self._broker.send([*messages, *self._store.comparisons.idle(0.0)])
        return len(messages) + self.sweep()

    def release_dead(self) -> int:
        """End the leases of processes of this machine that are gone, instead of waiting for them to run out."""
        dead = [name for name in self._store.dispatch.holders() if _is_dead_neighbour(name)]
        return self._store.dispatch.expire(dead) if dead else 0

    def refill(self) -> None:
        """Let waiting runs start while the window has room."""
        self._broker.send(self._store.dispatch.admit(self._settings.window, choose))

    def _lost_messages(self) -> list[Message]:
        if self._broker.came_back_empty():
            return self._store.dispatch.all_sent()
        seconds = self._settings.overtaken_seconds
        return [
            message
            for stage in OPEN_STAGES
            for message in self._store.dispatch.overtaken(stage, seconds, self._broker.depth(stage) == 0)
        ]

    def _idle_comparisons(self) -> list[Message]:
        """A comparison may stand behind many judgements: while their queue is full, its message is not lost."""
        seconds = self._settings.overtaken_seconds
        return self._store.comparisons.idle(seconds if self._broker.depth("judge") == 0 else 20 * seconds)

    def _end_batches(self, touched: set[str]) -> None:
        for batch_id in touched | set(self._store.dispatch.settled_batches()):
            if message := self._store.batches.finish_if_settled(batch_id):
                self._broker.send([message])
        self._broker.send(self._store.dispatch.idle_aggregates(self._settings.overtaken_seconds))

    @staticmethod
    def _tell(what: str, messages: list[Message]) -> None:
        if messages:
            log.warning(f"{what}, sent again", count=len(messages))


def _is_dead_neighbour(worker: str) -> bool:
    host, _, pid = worker.rpartition(":")
    if host != socket.gethostname() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
