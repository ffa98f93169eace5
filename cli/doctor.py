"""`assay doctor`: whether this machine can do what the settings ask for.

Every probe is a small function that looks at one thing and says what it found. A new one is a function and its place in
PROBES. The probes of database, broker, models, disk and clock are in cli/doctor_parts.py.
"""

import os
from collections.abc import Callable, Iterator

import typer

from cli.doctor_parts import (
    Health,
    Line,
    probe_broker,
    probe_clock,
    probe_database,
    probe_disk,
    probe_limits,
    probe_models,
    probe_python,
    probe_versions,
)
from service.errors import Unavailable
from service.settings import Settings, load_settings


def doctor() -> None:
    """Say on one screen whether this machine can do what the settings ask for, and what to do; exit code 1 if not."""
    settings = load_settings()
    lines = [line for probe in PROBES for line in probe(settings)]
    width = max(len(line.what) for line in lines)
    for line in lines:
        print(f"{line.health:<7} {line.what:<{width}}  {line.detail}")
    raise typer.Exit(1 if any(line.health is Health.BROKEN for line in lines) else 0)


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


PROBES: list[Callable[[Settings], Iterator[Line]]] = [
    probe_python,
    probe_versions,
    probe_user,
    probe_sandbox,
    probe_other_tiers,
    probe_database,
    probe_broker,
    probe_limits,
    probe_models,
    probe_disk,
    probe_clock,
]
