"""A whole small installation in one process: broker in memory, every role a thread pool, the same tasks as a fleet."""

import threading
from types import TracebackType
from typing import Any

from celery.worker import WorkController

from service.bootstrap import Parts
from service.queue import make_app
from workers.control import Control
from workers.roles import WorkerRole, roles
from workers.tasks import use


class Embedded:
    """Starts on entry, drains on exit."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._workers: list[tuple[Any, threading.Thread]] = []
        self._control = Control(lambda: parts)

    def __enter__(self) -> "Embedded":
        use(lambda: self._parts)
        self._parts.recovery.release_dead()
        self._parts.recovery.restart()
        for role in roles(self._parts.settings).values():
            self._start(role)
        self._control.start()
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _where: TracebackType | None
    ) -> None:
        self._control.stop()
        for worker, _thread in self._workers:
            worker.signal_consumer_close()
        # What is at work is handed back instead of waited for: the database keeps it for next time.
        self._parts.leases.hand_back_all()
        # Side by side: each takes about a second to notice.
        stops = [threading.Thread(target=worker.stop, daemon=True) for worker, _thread in self._workers]
        for stop in stops:
            stop.start()
        for stop in stops:
            stop.join(self._parts.settings.grace_seconds)

    def _start(self, role: WorkerRole) -> None:
        app = make_app(self._parts.settings)
        worker = WorkController(
            app=app,
            hostname=f"{role.name}@embedded",
            pool_cls="threads",
            concurrency=role.concurrency,
            queues=list(role.queues),
            loglevel="WARNING",
            without_heartbeat=True,
            without_mingle=True,
            without_gossip=True,
        )
        thread = threading.Thread(target=worker.start, name=role.name, daemon=True)
        thread.start()
        self._workers.append((worker, thread))
