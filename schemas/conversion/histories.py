"""Histories in the words of another dialect."""

import re

from schemas.base import CaseId
from schemas.conversion.losses import Losses
from schemas.history import History, HistoryVersion
from schemas.kinds import Dialect


def convert_history(history: History, to: Dialect, losses: Losses) -> History:
    """v0, v1, … are 0, 1, … in the cases dialect."""
    versions = history.versions or ()
    if to is Dialect.CASES:
        numbered = tuple(_numbered(version, index, losses) for index, version in enumerate(versions))
        current = _number(history.current_best) if history.current_version is None else history.current_version
        losses.say("current_best", "the best version is written as the current one")
        return history.model_copy(update={"versions": numbered, "current_version": current, "current_best": None})
    named = [version.model_copy(update={"version": _name(version.version)}) for version in versions]
    linked = [
        version if version.parent or index == 0 else version.model_copy(update={"parent": named[index - 1].version})
        for index, version in enumerate(named)
    ]
    losses.say("versions", "each version is taken to be made from the one before it")
    return history.model_copy(update={"versions": tuple(linked)})


def _numbered(version: HistoryVersion, index: int, losses: Losses) -> HistoryVersion:
    number = _number(version.version)
    if number is None:
        losses.say(f"versions[{index}].version", "names without a number are numbered by their place")
        number = index
    path = version.path or f"v{number}/skill"
    return version.model_copy(update={"version": number, "path": path})


def _number(name: CaseId | None) -> int | None:
    if isinstance(name, int):
        return name
    found = re.fullmatch(r"v?(\d{1,9})", name or "")
    return int(found[1]) if found else None


def _name(version: CaseId | None) -> str | None:
    return f"v{version}" if isinstance(version, int) else version
