"""Structural expectations as objects: the common keys, and beside them the fields of their type."""

from typing import Any

from pydantic import JsonValue

from schemas.checks import CHECK_TYPES, check_problems, fields_of
from schemas.dialects.codecs import Codec, JsonSchema, ListOf
from schemas.dialects.place import Place
from schemas.dialects.shape import Shape
from schemas.suite import StructuralExpectation


class StructuralShape(Shape):
    """A structural expectation: the fields of its type stand beside the common ones."""

    def settle(self, fields: dict[str, Any], value: dict[str, JsonValue], place: Place) -> None:  # noqa: ARG002 -- the signature of Shape
        check_type = fields.get("type")
        if not isinstance(check_type, str):
            return
        if check_type not in CHECK_TYPES:
            known = ", ".join(CHECK_TYPES)
            place.at("type").error("unknown_check", f"no structural check is called {check_type!r}; there are {known}")
            return
        fields["params"] = self._take_params(check_type, fields["extra"])
        for name, message in check_problems(check_type, fields["params"]):
            (place.at(name) if name else place).error("bad_check", message)
        for name in fields["extra"].keys() - self._by_name.keys():
            if fields["extra"][name] is not None:
                place.at(name).warn("unknown_field", f"{check_type} has no such field; it is kept but does nothing")

    def _take_params(self, check_type: str, extra: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Move the type's fields out of the unknown keys; null is "not given", except as the value to compare with."""
        own = fields_of(check_type)
        taken = [name for name in extra if name in own and (extra[name] is not None or name == "equals")]
        return {name: extra.pop(name) for name in taken}

    def write(self, value: Any) -> JsonValue:
        assert isinstance(value, StructuralExpectation)
        return super().write(value.model_copy(update={"extra": {**value.params, **value.extra}}))

    def schema(self) -> JsonSchema:
        by_type: list[JsonValue] = [_check_schema(name, self) for name in CHECK_TYPES]
        return {"type": "object", "description": self.about, "oneOf": by_type}


def _check_schema(check_type: str, shape: Shape) -> JsonSchema:
    """The common keys with one type's own fields."""
    model = CHECK_TYPES[check_type]
    own = model.model_json_schema(by_alias=True)
    common = Shape.schema(shape)
    properties: Any = {**_dict(common["properties"]), **_dict(own.get("properties", {}))}
    properties["type"] = {"const": check_type}
    needed: Any = [*_list(common["required"]), *_list(own.get("required", []))]
    described = {"description": model.__doc__ or ""}
    either = {"anyOf": own["anyOf"]} if "anyOf" in own else {}
    return {"type": "object", **described, "properties": properties, "required": needed, **either}


def _dict(value: Any) -> dict[str, Any]:
    assert isinstance(value, dict)
    return value


def _list(value: Any) -> list[Any]:
    assert isinstance(value, list)
    return value


class StructuralList(Codec):
    """Structural expectations; ids that are missing are S1, S2, … by position, as the public checker does."""

    def __init__(self, item: Shape) -> None:
        self._list = ListOf(item)

    def read(self, value: JsonValue, place: Place) -> tuple[Any, ...]:
        if isinstance(value, list):
            value = [_with_id(item, index, place.at(index)) for index, item in enumerate(value)]
        return self._list.read(value, place)

    def write(self, value: Any) -> JsonValue:
        return self._list.write(value)

    def schema(self) -> JsonSchema:
        return self._list.schema()


def _with_id(item: JsonValue, index: int, place: Place) -> JsonValue:
    if not isinstance(item, dict) or isinstance(item.get("id"), str):
        return item
    own = item.get("id")
    made = str(own) if isinstance(own, int) and not isinstance(own, bool) else f"S{index + 1}"
    place.note("generated_id", f"has no id that is a text; it is called {made} here")
    return {**item, "id": made}
