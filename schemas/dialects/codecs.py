"""How single JSON values are read, written and described: the leaves of the tables in the dialect modules."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeAlias

from pydantic import JsonValue

from schemas.dialects.place import Place, Problem, Unusable

JsonSchema: TypeAlias = dict[str, JsonValue]


class Codec(ABC):
    """One way to read a JSON value, to write it back and to describe it."""

    @abstractmethod
    def read(self, value: JsonValue, place: Place) -> Any:
        """The canonical value; raises Unusable."""

    @abstractmethod
    def write(self, value: Any) -> JsonValue:
        """The JSON value again."""

    @abstractmethod
    def schema(self) -> JsonSchema:
        """The JSON Schema of what is read."""


def named(value: JsonValue) -> str:
    """What kind of JSON value this is, for a sentence."""
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def mistyped(value: JsonValue, wanted: str, place: Place) -> Unusable:
    """The complaint that a value has another type."""
    return Unusable(Problem(place, "wrong_type", f"must be {wanted}, not {named(value)}"))


class Plain(Codec):
    """A value that is the same in JSON and in our documents."""

    def __init__(self, types: tuple[type, ...], wanted: str, schema: JsonSchema) -> None:
        self._types = types
        self._wanted = wanted
        self._schema = schema

    def read(self, value: JsonValue, place: Place) -> JsonValue:
        # bool is an int in Python, but true is no number.
        if type(value) not in self._types:
            raise mistyped(value, self._wanted, place)
        return value

    def write(self, value: JsonValue) -> JsonValue:
        return value

    def schema(self) -> JsonSchema:
        return dict(self._schema)


class AtLeast(Plain):
    """A whole number with a smallest value."""

    def __init__(self, least: int) -> None:
        super().__init__((int,), "a whole number", {"type": "integer", "minimum": least})
        self._least = least

    def read(self, value: JsonValue, place: Place) -> JsonValue:
        number = super().read(value, place)
        if isinstance(number, int) and number < self._least:
            raise Unusable(Problem(place, "out_of_range", f"must be {self._least} or more, not {number}"))
        return number


TEXT = Plain((str,), "a text", {"type": "string"})
INTEGER = Plain((int,), "a whole number", {"type": "integer"})
NUMBER = Plain((int, float), "a number", {"type": "number"})
FLAG = Plain((bool,), "true or false", {"type": "boolean"})
ID = Plain((int, str), "a whole number or a text", {"type": ["integer", "string"]})
TEXT_OR_NUMBER = Plain((str, int, float, type(None)), "a text or a number", {"type": ["string", "number", "null"]})
OBJECT = Plain((dict,), "an object", {"type": "object"})
ANYTHING = Plain((str, int, float, bool, list, dict, type(None)), "JSON", {})


def one_of(*words: str) -> Codec:
    """A text that should be one of these; another one is read all the same, the schema tells."""
    return Plain((str,), "a text", {"type": "string", "enum": list(words)})


class ListOf(Codec):
    """A list whose items are all alike."""

    def __init__(self, item: Codec, at_least: int = 0) -> None:
        self.item = item
        self._at_least = at_least

    def read(self, value: JsonValue, place: Place) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise mistyped(value, "a list", place)
        return read_all(self.item, list(enumerate(value)), place)

    def write(self, value: Sequence[Any]) -> JsonValue:
        return [self.item.write(item) for item in value]

    def schema(self) -> JsonSchema:
        least: JsonSchema = {"minItems": self._at_least} if self._at_least else {}
        return {"type": "array", "items": self.item.schema(), **least}


def read_all(codec: Codec, items: Sequence[tuple[str | int, JsonValue]], place: Place) -> tuple[Any, ...]:
    """Every item, or one Unusable with the problems of all of them."""
    read: list[Any] = []
    problems: list[Problem] = []
    failed = False
    for part, item in items:
        try:
            read.append(codec.read(item, place.at(part)))
        except Unusable as unusable:
            failed = True
            problems.extend(unusable.problems)
    if failed:
        raise Unusable(*problems)
    return tuple(read)


class MapOf(Codec):
    """An object whose keys are data and whose values are all alike."""

    def __init__(self, item: Codec) -> None:
        self.item = item

    def read(self, value: JsonValue, place: Place) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise mistyped(value, "an object", place)
        return dict(zip(value, read_all(self.item, list(value.items()), place), strict=True))

    def write(self, value: dict[str, Any]) -> JsonValue:
        return {name: self.item.write(item) for name, item in value.items()}

    def schema(self) -> JsonSchema:
        return {"type": "object", "additionalProperties": self.item.schema()}


TEXTS = ListOf(TEXT)
