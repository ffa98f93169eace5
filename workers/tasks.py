"""The tasks: two lines that call the service.

They are shared by all apps of a process, because Celery's thread pools look a task up on the current app, not on the
worker's; so what they work with is the process's, too.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from celery import shared_task

from schemas.states import Stage
from service import log
from service.bootstrap import Parts
from service.errors import Unavailable

_given: list[Callable[[], Parts]] = []


def use(parts: Callable[[], Parts]) -> None:
    """From now on the tasks of this process work with these parts."""
    _given[:] = [parts]


def parts() -> Parts:
    """The parts of this process, also after a fork."""
    return _given[0]()


def task(name: str, **options: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a task; the database's or broker's absence ends it quietly, its row is found again."""

    def make(body: Callable[..., None]) -> Callable[..., None]:
        if inspect.iscoroutinefunction(body):
            raise TypeError(f"{name} is a coroutine; Celery would report it as done without running it")

        @wraps(body)
        def guarded(**arguments: Any) -> None:
            try:
                body(**arguments)
            except Unavailable as error:
                # The message is spent, the row is not: recovery sends it again.
                log.warning("task gave up for now", task=name, reason=str(error))

        shared_task(name=name, **options)(guarded)
        return guarded

    return make


# Late: a long execution is acknowledged when it ended, so that no run is reserved behind it.
@task("assay.execute", acks_late=True)
def execute(id: int) -> None:
    """Execute a run."""
    parts().stages.work(id, Stage.EXECUTE, parts().execute)


@task("assay.check")
def check(id: int) -> None:
    """Check what a run left."""
    parts().stages.work(id, Stage.CHECK, parts().check)


# Early: the best rate for many short calls; the lease brings back what a dead worker had reserved.
@task("assay.judge")
def judge(id: int) -> None:
    """Judge a run."""
    parts().stages.work(id, Stage.JUDGE, parts().judge)


@task("assay.compare")
def compare(id: str) -> None:
    """Compare two sides of a suite."""
    parts().compare(id)


@task("assay.aggregate")
def aggregate(id: str) -> None:
    """Aggregate a batch."""
    parts().stages.aggregate(id, parts().aggregate)


@task("assay.refill")
def refill() -> None:
    """Let waiting runs start."""
    parts().recovery.refill()
