"""Shapes: one table per object, from which reading, writing and the published JSON Schema follow.

Reading keeps what the table does not know, so writing what was read gives the same JSON by construction:

    key in the table, value fits        -> the model's field
    key in the table, value is null     -> `nulls`
    key in the table, value unusable    -> a finding, and the value as it is in `extra`
    any other key                       -> `extra`
    the order of them all               -> `keys`
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import JsonValue

from schemas.base import Node
from schemas.dialects.codecs import Codec, JsonSchema, mistyped
from schemas.dialects.place import Place, Problem, Unusable
from schemas.findings import Level


@dataclass(frozen=True, slots=True)
class Key:
    """One line of a shape."""

    name: str  # as the dialect spells it
    codec: Codec
    field: str = ""  # of the model; the same word unless said otherwise
    about: str = ""  # one sentence for the published schema
    needed: bool = False  # without it the object cannot be used
    on_bad: Level = Level.WARNING  # how bad an unusable value is
    aliases: tuple[str, ...] = ()  # other spellings seen in the wild: read with a note, never written by us
    always: bool = False  # in what we make ourselves, written even when it is null
    foreign: bool = False  # another dialect's key: read where found, but no part of this dialect

    @property
    def into(self) -> str:
        """The model's field."""
        return self.field or self.name


class Shape(Codec):
    """An object of a dialect and the model it becomes."""

    def __init__(self, model: type[Node], *keys: Key, about: str = "") -> None:
        self.model = model
        self.keys = keys
        self.about = about
        self._needed = [key for key in keys if key.needed]
        self._by_name = {name: key for key in keys for name in (key.name, *key.aliases)}

    def with_keys(self, *keys: Key) -> "Shape":
        """The same shape with more keys, or with others in the place of those of the same name."""
        changed = {key.name: key for key in keys}
        kept = [changed.pop(key.name, key) for key in self.keys]
        return type(self)(self.model, *kept, *changed.values(), about=self.about)

    def key(self, name: str) -> Key:
        """One line of the table."""
        return self._by_name[name]

    # reading

    def read(self, value: JsonValue, place: Place) -> Any:
        if not isinstance(value, dict):
            raise mistyped(value, "an object", place)
        fields: dict[str, Any] = {}
        nulls: list[str] = []
        extra: dict[str, JsonValue] = {}
        for name, item in value.items():
            key = self._wanted(name, value, place)
            if key is None:
                extra[name] = item
            elif item is None:
                nulls.append(name)
            else:
                self._read_key(key, name, item, fields, extra, place)
        fields.update(keys=tuple(value), nulls=tuple(nulls), extra=extra)
        self.settle(fields, value, place)
        self._demand(fields, extra, place)
        return self.model(**fields)

    def settle(self, fields: dict[str, Any], value: dict[str, JsonValue], place: Place) -> None:
        """For shapes whose fields are not one to one with keys: put `fields` right before the model is made."""

    def _wanted(self, name: str, value: dict[str, JsonValue], place: Place) -> Key | None:
        """The key to read this name as, if any; of several spellings the dialect's own wins, then the first."""
        key = self._by_name.get(name)
        if key is None or name == key.name:
            return key
        winner = next(
            spelling for spelling in (key.name, *key.aliases) if value.get(spelling) is not None or spelling == name
        )
        if winner != name:
            self.two_spellings(name, winner, value, place)
            return None
        place.at(name).note("renamed", f"read as {key.name}")
        return key

    def two_spellings(self, name: str, winner: str, value: dict[str, JsonValue], place: Place) -> None:
        """The object has a key under two names."""
        if value[name] != value[winner] and value[name] is not None:
            place.at(name).note("not_used", f"kept but not used, because {winner} is there too")

    def _read_key(
        self, key: Key, name: str, item: JsonValue, fields: dict[str, Any], extra: dict[str, JsonValue], place: Place
    ) -> None:
        try:
            fields[key.into] = key.codec.read(item, place.at(name))
        except Unusable as unusable:
            for problem in unusable.problems:
                problem.place.add(key.on_bad, problem.code, problem.message)
            extra[name] = item

    def _demand(self, fields: dict[str, Any], extra: dict[str, JsonValue], place: Place) -> None:
        """Raise for keys the object cannot do without; those with an unusable value were complained about already."""
        missing = [key for key in self._needed if key.into not in fields]
        if missing:
            silent = [key for key in missing if not extra.keys() & {key.name, *key.aliases}]
            raise Unusable(*(Problem(place, f"missing_{key.name}", _missing(key)) for key in silent))

    # writing

    def write(self, value: Node) -> JsonValue:
        return dict(self._in_order(value))

    def _in_order(self, node: Node) -> Iterator[tuple[str, JsonValue]]:
        """The keys it had, in its order; then what it gained since, in the table's order."""
        written: set[str] = set()
        names = set(node.keys)
        for name in node.keys:
            yield from self._written_as_read(name, node, written)
        for key in self.keys:
            if key.into not in written and not key.foreign and self._worth_writing(key, node):
                yield key.name, self._value(key, node)
                names.add(key.name)
        # A key unknown where it was read may be one of ours here; ours wins.
        yield from ((name, item) for name, item in node.extra.items() if name not in names)

    def _written_as_read(self, name: str, node: Node, written: set[str]) -> Iterator[tuple[str, JsonValue]]:
        key = self._by_name.get(name)
        given = key is not None and key.into not in written and self._given(key, node)
        if name in node.extra and not (given and key is not None and key.name == name):
            yield name, node.extra[name]
        elif name in node.nulls and (not given or self._said_elsewhere(key, name, node)):
            yield name, None
            written.update({key.into} if key is not None and not given else ())
        elif key is not None and key.into not in written:
            written.add(key.into)
            yield name, self._value(key, node)

    def _said_elsewhere(self, key: Key | None, name: str, node: Node) -> bool:
        """Whether the field was read from another spelling of the key."""
        silent = {name, *node.nulls, *node.extra}
        return any(self._by_name.get(other) is key for other in node.keys if other not in silent)

    def _value(self, key: Key, node: Node) -> JsonValue:
        value = getattr(node, key.into)
        return None if value is None else key.codec.write(value)

    def _given(self, key: Key, node: Node) -> bool:
        """Whether the field says something, as opposed to its default."""
        value = getattr(node, key.into)
        return value is not None and value != self.model.model_fields[key.into].get_default(call_default_factory=True)

    def _worth_writing(self, key: Key, node: Node) -> bool:
        if key.needed and getattr(node, key.into) is not None:
            return True
        return self._given(key, node) or (key.always and key.name not in node.extra and self._is_ours(node))

    def _is_ours(self, node: Node) -> bool:
        """Whether we made it: it says something, but was not read; an object that says nothing may have been {}."""
        return not node.keys and any(self._given(key, node) for key in self.keys)

    # describing

    def schema(self) -> JsonSchema:
        own = [key for key in self.keys if not key.foreign]
        needed: list[JsonValue] = [key.name for key in own if key.needed]
        return {
            "type": "object",
            **({"description": self.about} if self.about else {}),
            "properties": {key.name: _described(key) for key in own},
            **({"required": needed} if needed else {}),
        }


def foreign(keys: Sequence[Key]) -> list[Key]:
    """The same keys as guests in another dialect."""
    return [replace(key, foreign=True, needed=False) for key in keys]


def _missing(key: Key) -> str:
    others = f" (nor {', '.join(key.aliases)})" if key.aliases else ""
    return f"has no {key.name}{others}"


def _described(key: Key) -> JsonSchema:
    """A key's schema; what is not needed may be null."""
    schema = key.codec.schema() if key.needed else _nullable(key.codec.schema())
    return {"description": key.about, **schema} if key.about else schema


def _nullable(schema: JsonSchema) -> JsonSchema:
    kind = schema.get("type")
    if not schema or (isinstance(kind, list) and "null" in kind):
        return schema
    if isinstance(kind, str) and "enum" not in schema:
        return {**schema, "type": [kind, "null"]}
    return {"anyOf": [schema, {"type": "null"}]}
