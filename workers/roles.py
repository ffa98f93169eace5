"""The worker roles: which queues each consumes and which pool fits its work."""

from dataclasses import dataclass

from service.errors import BadInput
from service.settings import Settings


@dataclass(frozen=True)
class WorkerRole:
    """One kind of worker."""

    name: str
    queues: tuple[str, ...]
    pool: str  # on a fleet; inside one process everything is threads
    concurrency: int
    has_control: bool = False  # looks for what stands still


def roles(settings: Settings) -> dict[str, WorkerRole]:
    """All roles by name."""
    known = [
        WorkerRole("executor", ("execute",), "threads", settings.executor_concurrency),
        WorkerRole("checker", ("check",), "prefork", settings.checker_concurrency),
        WorkerRole("judge", ("judge",), "threads", settings.judge_concurrency),
        WorkerRole(
            "aggregator", ("aggregate", "control"), "threads", settings.aggregator_concurrency, has_control=True
        ),
    ]
    return {role.name: role for role in known}


def role_named(name: str, settings: Settings) -> WorkerRole:
    """One role; an unknown name is refused with the known ones."""
    known = roles(settings)
    if name not in known:
        raise BadInput(f"there is no worker role {name!r}; known roles: {', '.join(known)}, all")
    return known[name]
