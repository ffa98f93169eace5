"""One Celery worker process of a fleet: python -m workers.process ROLE [CONCURRENCY]."""

import ctypes
import os
import signal
import sys
import threading
from typing import Any

from celery import Celery
from celery.signals import worker_shutting_down
from celery.utils.nodenames import host_format

from service import log
from service.bootstrap import Parts
from service.queue import make_app
from service.settings import Settings
from workers.control import Control
from workers.roles import WorkerRole, role_named
from workers.tasks import use

_PR_SET_PDEATHSIG = 1
# A thread that waits for the interpreter wakes up after each such time to ask for it: hundreds of threads whose answers
# come together spend most of the machine on asking. Ours give it up by themselves with every wait for something else.
_SWITCH_SECONDS = 0.05


class ProcessParts:
    """The parts of whichever process asks: a forked child must not use its parent's connections."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._pid = os.getpid()
        self._parts = Parts(settings, is_worker=True)
        self._lock = threading.Lock()

    def __call__(self) -> Parts:
        if self._pid != os.getpid():
            with self._lock:
                if self._pid != os.getpid():
                    self._parts, self._pid = Parts(self._settings, is_worker=True), os.getpid()
        return self._parts


def run(role: WorkerRole, settings: Settings) -> int:
    """Work until told to stop; gives the exit code."""
    parts = ProcessParts(settings)
    app = make_app(settings)
    use(parts)
    if role.has_control:
        Control(parts).start()
    _stop_within_grace(parts, settings.grace_seconds)
    return _work(app, role)


def _work(app: Celery, role: WorkerRole) -> int:
    """What `celery worker` does, without its command line: that one loads Flower into every worker.

    Task events are off until somebody watches: Flower switches them on, and each costs half as much as its task.
    """
    worker = app.Worker(
        hostname=host_format(f"{role.name}-{os.getpid()}@%h"),
        pool_cls=role.pool,
        concurrency=role.concurrency,
        queues=list(role.queues),
        loglevel="WARNING",
        without_gossip=True,
        without_mingle=True,
    )
    worker.start()
    return int(worker.exitcode or 0)


def _stop_within_grace(parts: ProcessParts, seconds: float) -> None:
    """Thread pools wait for their tasks for ever; after the grace period we hand back what is not done."""

    def hand_back() -> None:
        count = parts().leases.hand_back_all()
        log.warning("grace period over, handed back", count=count)
        os._exit(0)

    def begin(**_: Any) -> None:
        timer = threading.Timer(seconds, hand_back)
        timer.daemon = True
        timer.start()

    worker_shutting_down.connect(begin, weak=False)


def _end_with_parent() -> None:
    """A worker whose supervisor is gone stops: whoever starts the supervisor again gets fresh workers."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def main() -> None:
    """Started by the supervisor."""
    settings = Settings()
    log.configure(settings.log_level, settings.log_format)
    sys.setswitchinterval(_SWITCH_SECONDS)
    _end_with_parent()
    role = role_named(sys.argv[1], settings)
    if len(sys.argv) > 2:
        role = WorkerRole(role.name, role.queues, role.pool, int(sys.argv[2]), role.has_control)
    sys.exit(run(role, settings))


if __name__ == "__main__":
    main()
