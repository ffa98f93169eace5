"""Which configuration is the treatment and which the control, told by their names, never by the alphabet."""

import re
from collections.abc import Iterable

from schemas.states import Role
from service.aggregation.records import Arm
from service.errors import BadInput

_CONTROL = re.compile(r"(^|[_\-. ])(without|no|old|baseline|control|base|vanilla|previous|prev)([_\-. ]|$)")
_TREATMENT = re.compile(r"(^|[_\-. ])(with|new|treatment|skill|candidate|improved)([_\-. ]|$)")
_VERSION = re.compile(r"^v?(\d+)$")


def arms(configurations: Iterable[str], treatment: str | None = None, control: str | None = None) -> tuple[Arm, ...]:
    """Treatment, control, then the rest without a role; a choice of the caller wins over names."""
    names = list(dict.fromkeys(configurations))
    for wanted in (treatment, control):
        if wanted is not None and wanted not in names:
            raise BadInput(f"there is no configuration {wanted!r}; the folder has {', '.join(names)}")
    if treatment is not None and treatment == control:
        raise BadInput(f"{treatment!r} cannot be treatment and control at once")
    one = treatment or _first(names, Role.TREATMENT, control)
    zero = control or _first(names, Role.CONTROL, one)
    roles = {one: Role.TREATMENT, zero: Role.CONTROL}
    ordered = dict.fromkeys(name for name in (one, zero, *names) if name is not None)
    return tuple(Arm(name, roles.get(name)) for name in ordered)


def _first(names: list[str], role: Role, taken: str | None) -> str | None:
    versions = sorted((int(m.group(1)), name) for name in names if (m := _VERSION.match(name)))
    if versions and len(versions) == len(names):
        return _of_versions([name for _, name in versions if name != taken], role, taken is not None)
    return next((name for name in names if name != taken and role_of(name) is role), None)


def _of_versions(oldest_first: list[str], role: Role, other_is_known: bool) -> str | None:
    """The newest version is on trial against the one before it."""
    if not oldest_first or (role is Role.CONTROL and not other_is_known):
        return None
    return oldest_first[-1]


def role_of(name: str) -> Role | None:
    """What a name says; None when it says nothing."""
    lower = name.lower()
    if _CONTROL.search(lower):
        return Role.CONTROL
    return Role.TREATMENT if _TREATMENT.search(lower) else None
