"""The expectations of a case: texts, criteria, typed objects or a mix of them in one list."""

from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from schemas.dialects import wild
from schemas.dialects.codecs import FLAG, ID, TEXT, Codec, JsonSchema, ListOf, mistyped
from schemas.dialects.place import Place, Problem, Unusable
from schemas.dialects.shape import Key, Shape
from schemas.dialects.typed import structural_of
from schemas.suite import Criterion, Statement, StructuralExpectation


class StatementShape(Shape):
    """A statement with a name: which of its texts is the sentence is a matter of order, not of surprise."""

    def two_spellings(self, name: str, winner: str, value: dict[str, JsonValue], place: Place) -> None:
        pass


STATEMENT = StatementShape(
    Statement,
    Key("text", TEXT, needed=True, aliases=wild.STATEMENT_TEXT),
    Key("id", ID),
)
CRITERION = Shape(
    Criterion,
    Key("criterion", TEXT, needed=True, about="short label for this check"),
    Key("description", TEXT, about="what must be true, concrete and falsifiable"),
    Key("required", FLAG, about="whether failing it fails the case"),
)


class StatementCodec(Codec):
    """A text, or an object around one."""

    def read(self, value: JsonValue, place: Place) -> Statement:
        if isinstance(value, str):
            return Statement(text=value)
        if not isinstance(value, dict):
            raise mistyped(value, "a text", place)
        statement: Statement = STATEMENT.read(value, place)
        return statement

    def write(self, value: Statement) -> JsonValue:
        return STATEMENT.write(value) if value.keys or value.extra or value.id is not None else value.text

    def schema(self) -> JsonSchema:
        return {"anyOf": [TEXT.schema(), STATEMENT.schema()]}


STATEMENTS = ListOf(StatementCodec())


@dataclass
class Mixed:
    """What one list of expectations holds, by who decides it."""

    statements: list[Statement] = field(default_factory=list)
    structural: list[StructuralExpectation] = field(default_factory=list)
    criteria: list[Criterion] = field(default_factory=list)


class Expectations(Codec):
    """A case's list of expectations; its own items are written, the others only read."""

    def __init__(self, own: Codec, own_type: type[Statement] | type[Criterion], about: JsonSchema) -> None:
        self._own = own
        self._own_type = own_type
        self._about = about

    def read(self, value: JsonValue, place: Place) -> Mixed:
        if not isinstance(value, list):
            raise mistyped(value, "a list", place)
        mixed = Mixed()
        problems: list[Problem] = []
        for index, item in enumerate(value):
            try:
                self._sort(item, index, place.at(index), mixed)
            except Unusable as unusable:
                problems.extend(unusable.problems)
        if problems:
            raise Unusable(*problems)
        return mixed

    def _sort(self, item: JsonValue, index: int, place: Place, mixed: Mixed) -> None:
        """Put one item where it belongs."""
        if isinstance(item, dict) and isinstance(item.get("type"), str):
            self._sort_typed(item, index, place, mixed)
        elif isinstance(item, dict) and self._is_criterion(item):
            mixed.criteria.append(CRITERION.read(item, place))
            self._deviate(Criterion, place, "a criterion, scored 1-5")
        else:
            mixed.statements.append(STATEMENTS.item.read(item, place))
            self._deviate(Statement, place, "a statement, passed or not")
            if isinstance(item, dict):
                place.note("objects", "an object; its text is read as the statement")

    def _is_criterion(self, item: dict[str, JsonValue]) -> bool:
        return isinstance(item.get("criterion"), str) and (
            "required" in item or (self._own_type is Criterion and "text" not in item)
        )

    def _deviate(self, found: type[Any], place: Place, what: str) -> None:
        if found is not self._own_type:
            place.note("reshaped", f"read as {what}")

    def _sort_typed(self, item: dict[str, JsonValue], index: int, place: Place, mixed: Mixed) -> None:
        structural = structural_of(item, index + 1)
        if structural is not None:
            mixed.structural.append(structural)
            place.note("typed", f"type {item['type']}: read as the structural check {structural.type}")
        else:
            mixed.statements.append(_typed_statement(item, place))
            place.note("typed", f"type {item['type']}: no check is exactly that; read as a statement for the judge")

    def write(self, value: Any) -> JsonValue:
        return [self._own.write(item) for item in value]

    def schema(self) -> JsonSchema:
        return {"type": "array", "items": self._about}


def _typed_statement(item: dict[str, JsonValue], place: Place) -> Statement:
    """The object's own words, or its fields as a sentence when it has none."""
    if any(isinstance(item.get(name), str) for name in ("text", *wild.STATEMENT_TEXT)):
        statement: Statement = STATEMENT.read(item, place)
        return statement
    asked = ", ".join(f"{name} {value}" for name, value in item.items() if name not in ("id", "type"))
    return Statement(text=f"{item['type']}: {asked}", keys=tuple(item), extra=dict(item))


STATEMENT_LIST = Expectations(STATEMENTS.item, Statement, {"type": "string"})
CRITERION_LIST = Expectations(CRITERION, Criterion, CRITERION.schema())
