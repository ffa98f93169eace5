"""Judging again on stored artifacts: what changed, old beside new."""

from dataclasses import dataclass

from schemas.grading import Grading
from schemas.structural import Structural


@dataclass(frozen=True)
class Change:
    """One thing that is decided differently, or only in one of two gradings; None where it was not decided."""

    what: str  # a statement's text, or the name of a check, criterion or dimension
    old: bool | float | None
    new: bool | float | None


def changes(
    old: Grading | None,
    new: Grading | None,
    old_checks: Structural | None = None,
    new_checks: Structural | None = None,
) -> list[Change]:
    """What two gradings of one run decide differently, in the order of the new one; checks come first."""
    before = {**checked(old_checks), **decided(old)}
    after = {**checked(new_checks), **decided(new)}
    names = [*after, *(name for name in before if name not in after)]
    return [Change(name, before.get(name), after.get(name)) for name in names if before.get(name) != after.get(name)]


def checked(structural: Structural | None) -> dict[str, bool | float]:
    """Everything that code decided, by text."""
    found = structural.expectations if structural else ()
    return {check.text: check.passed for check in found if check.passed is not None}


def decided(grading: Grading | None) -> dict[str, bool | float]:
    """Everything a grading decides, by text or name."""
    if grading is None:
        return {}
    found: dict[str, bool | float | None] = {one.text: one.passed for one in grading.expectations or ()}
    found |= {one.criterion: one.score for one in grading.results or ()}
    found |= {one.name: one.score for one in grading.rubric_scores or ()}
    return {name: value for name, value in found.items() if value is not None}
