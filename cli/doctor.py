"""`assay doctor`: whether this machine can do what the settings ask for.

Every probe is a small function that looks at one thing and says what it found. A new one is a function and its place in
PROBES.
"""

import os
import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

import typer

from service.errors import Unavailable
from service.settings import Settings


class Health(StrEnum):
    """How a thing stands."""

    OK = "ok"
    NOTE = "note"  # it works, and you should know this
    BROKEN = "broken"  # what the settings ask for does not work


@dataclass(frozen=True)
class Line:
    """What a probe found about one thing."""

    health: Health
    what: str
    detail: str


def doctor() -> None:
    """Say whether this machine can do what the settings ask for; exit code 1 if something cannot."""
    lines = [line for probe in PROBES for line in probe(Settings())]
    width = max(len(line.what) for line in lines)
    for line in lines:
        print(f"{line.health:<7} {line.what:<{width}}  {line.detail}")
    raise typer.Exit(1 if any(line.health is Health.BROKEN for line in lines) else 0)


def probe_python(_settings: Settings) -> Iterator[Line]:
    """The interpreter."""
    yield Line(Health.OK, "python", f"{platform.python_version()} at {sys.executable}")


def probe_sandbox(settings: Settings) -> Iterator[Line]:
    """The tier that was asked for, tried for real."""
    from service.sandbox import open_sandbox

    try:
        tier = open_sandbox(settings.sandbox).tier
    except Unavailable as error:
        yield Line(Health.BROKEN, "sandbox", f"{settings.sandbox} was asked for: {error}")
        return
    if tier == "none":
        yield Line(Health.NOTE, "sandbox", "none: agents and scripts run unprotected as you; results say so")
    elif tier == "landlock":
        yield Line(Health.NOTE, "sandbox", "landlock: weaker than bwrap, see docs/security.md; results say so")
    else:
        yield Line(Health.OK, "sandbox", "bwrap: tried, holds")


def probe_other_tiers(settings: Settings) -> Iterator[Line]:
    """The confining tiers that were not asked for."""
    from service.sandbox import open_sandbox
    from service.sandbox.opening import Tier

    tiers: tuple[Tier, ...] = ("bwrap", "landlock")
    for tier in tiers:
        if tier != settings.sandbox:
            try:
                open_sandbox(tier)
            except Unavailable as error:
                yield Line(Health.NOTE, f"sandbox {tier}", f"would not work: {error}")
            else:
                yield Line(Health.OK, f"sandbox {tier}", "would work")


def probe_user(_settings: Settings) -> Iterator[Line]:
    """Who commands are on this machine."""
    from service.sandbox.slots import SLOTS, UID_BASE

    if os.geteuid() == 0:
        users = f"{UID_BASE} to {UID_BASE + SLOTS - 1}"
        yield Line(Health.NOTE, "user", f"root: every sandboxed command becomes one of the users {users}")
    else:
        yield Line(Health.OK, "user", f"{os.geteuid()}: sandboxed commands stay this user, without its files")


PROBES: list[Callable[[Settings], Iterator[Line]]] = [probe_python, probe_user, probe_sandbox, probe_other_tiers]
