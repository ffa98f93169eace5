"""Choosing a tier. What was asked for runs, or the reason is given: nothing weaker is taken in silence."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

from service.errors import Unavailable
from service.sandbox.bubblewrap import Bubblewrap
from service.sandbox.landlock import Landlock
from service.sandbox.plain import Plain
from service.sandbox.port import Sandbox
from service.sandbox.probe import prove
from service.sandbox.scratch import remove_stale
from service.sandbox.slots import UID_BASE

Tier: TypeAlias = Literal["bwrap", "landlock", "none", "best"]


def open_sandbox(tier: Tier, work: Path | None = None, uid_base: int = UID_BASE) -> Sandbox:
    """A sandbox that was tried here and keeps its promises; raises Unavailable with the reason and the remedy.

    `best` is the strongest that works, for programs of our own only. `work` is where each command's private folders
    are made, the system's temporary folder by default; as root others must be able to pass through it. What killed
    processes left there is cleared away.
    """
    remove_stale(work)
    if tier != "best":
        return _openers(work, uid_base)[tier]()
    for opener in _openers(work, uid_base).values():
        try:
            return opener()
        except Unavailable:
            continue  # the next one is weaker, and its name says so
    raise Unavailable("no sandbox works here, not even none; look at assay doctor")


def _openers(work: Path | None, uid_base: int) -> dict[str, Callable[[], Sandbox]]:
    """One opener per tier, strongest first."""
    return {
        "bwrap": lambda: prove(Bubblewrap(work, uid_base)),
        "landlock": lambda: prove(Landlock(work, uid_base)),
        "none": lambda: prove(Plain(work)),
    }
