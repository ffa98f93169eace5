"""What a conversion leaves behind, found by comparing what went in with what can be read back."""

from collections import Counter
from typing import Any, TypeVar

from schemas.base import Node
from schemas.findings import Finding, Level
from schemas.kinds import Dialect

N = TypeVar("N", bound=Node)
_MEMORY = ("keys", "nulls")


class Losses:
    """The list of what is lost; the same sentence once, with a count."""

    def __init__(self, to: Dialect) -> None:
        self._to = to
        self._first: dict[tuple[str, str], str] = {}
        self._counts: Counter[tuple[str, str]] = Counter()

    def say(self, path: str, message: str, code: str = "changed") -> None:
        """Remember one change."""
        self._first.setdefault((code, message), path)
        self._counts[code, message] += 1

    def drop(self, path: str, name: str) -> None:
        """Remember that something has no place in the target."""
        self.say(path, f"{name} has no place in the {self._to} dialect", "lost")

    def findings(self) -> tuple[Finding, ...]:
        """One warning per sentence."""
        return tuple(
            Finding(level=Level.WARNING, path=path, message=_counted(message, self._counts[code, message]), code=code)
            for (code, message), path in self._first.items()
        )


def _counted(message: str, count: int) -> str:
    if count == 1:
        return message
    return f"{message} (and at {count - 1} more place{'s' if count > 2 else ''})"


def plain(node: N) -> N:
    """The same document as if we had made it: no memory of key order, nulls or spellings."""
    fields = {name: _plain(getattr(node, name)) for name in type(node).model_fields if name not in _MEMORY}
    return type(node)(**fields)


def _plain(value: Any) -> Any:
    if isinstance(value, Node):
        return plain(value)
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value


def losses_between(before: Any, after: Any, path: str, losses: Losses) -> None:
    """Compare two plain documents, field by field."""
    if before == after:
        return
    if isinstance(before, Node) and isinstance(after, Node):
        _fields_between(before, after, path, losses)
    elif isinstance(before, tuple) and isinstance(after, tuple) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            losses_between(one, other, f"{path}[{index}]", losses)
    elif isinstance(before, dict) and isinstance(after, dict):
        for name in before:
            losses_between(before[name], after.get(name), f"{path}.{name}", losses)
    else:
        losses.drop(path, path.rpartition(".")[2].split("[")[0])


def _fields_between(before: Node, after: Node, path: str, losses: Losses) -> None:
    for name in type(before).model_fields:
        one, other = getattr(before, name), getattr(after, name)
        if name not in (*_MEMORY, "extra"):
            losses_between(one, other, f"{path}.{name}" if path else name, losses)
    for name in before.extra.keys() - after.extra.keys():
        losses.drop(f"{path}.{name}" if path else name, name)
