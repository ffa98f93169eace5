"""Paths into JSON values: `$.a.b[0]['odd key']`, the `$` optional. No wildcards: a check asks for one place."""

import re

from service.errors import BadInput

_STEP = re.compile(
    r"""\.?([^.\[\]'"*$\s]+) | \[\s*(-?\d+)\s*\] | \[\s*'([^']*)'\s*\] | \[\s*"([^"]*)"\s*\]""", re.VERBOSE
)
_MAX_CHARS = 500


def parse_path(path: str) -> list[str | int]:
    """The keys and positions to follow; raises BadInput with the place that cannot be read."""
    if len(path) > _MAX_CHARS:
        raise BadInput(f"the path is longer than {_MAX_CHARS} characters")
    rest = path.strip().removeprefix("$")
    keys: list[str | int] = []
    place = 0
    while place < len(rest):
        step = _STEP.match(rest, place)
        if step is None:
            raise BadInput(
                f"path '{path}' cannot be read at '{rest[place : place + 20]}'; write it like $.name[0].other"
            )
        name, position, *quoted = step.groups()
        keys.append(_key(name) if name is not None else int(position) if position is not None else _first(quoted))
        place = step.end()
    return keys


def _key(name: str) -> str | int:
    """A bare number may be a position or a key; the value decides."""
    return int(name) if re.fullmatch(r"0|[1-9]\d{0,8}", name) else name


def _first(found: list[str | None]) -> str:
    return next(text for text in found if text is not None)
