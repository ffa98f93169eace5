"""A command's limits in the words of prlimit and setrlimit."""

import math
import resource

from service.sandbox.port import Command

_ADDRESS_SPACE = 4 << 30  # node reserves this much before it starts; it stops shared memory, which `data` does not see


def limits_of(command: Command) -> dict[str, int]:
    """Limit by name, never above what this process may give: raising one would fail inside."""
    limits = command.limits
    wanted = {
        "core": 0,
        "cpu": limits.cpu_seconds or math.ceil(command.timeout_seconds) + 1,
        "data": limits.memory_bytes,
        "as": max(_ADDRESS_SPACE, 4 * limits.memory_bytes),
        "fsize": limits.file_bytes,
        "nofile": limits.open_files,
        "nproc": limits.processes,
        "memlock": 65_536,
        "msgqueue": 0,
        "sigpending": 256,
    }
    return {name: _at_most(name, value) for name, value in wanted.items() if _number(name) is not None}


def _at_most(name: str, value: int) -> int:
    number = _number(name)
    assert number is not None
    hard = resource.getrlimit(number)[1]
    return value if hard == resource.RLIM_INFINITY else min(value, hard)


def _number(name: str) -> int | None:
    """The kernel's number of a limit, if this system has it."""
    return getattr(resource, f"RLIMIT_{name.upper()}", None)
