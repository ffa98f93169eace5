"""What makes a case impossible, or worthless, to run although every value has the right type."""

from collections.abc import Iterable
from typing import Any

from schemas.dialects.place import Place
from schemas.suite import Criterion, Dimension, Rubric, Statement, StructuralExpectation


def look_at_case(fields: dict[str, Any], place: Place) -> None:
    """Find what cannot be decided in one case."""
    structural: tuple[StructuralExpectation, ...] = fields.get("structural", ())
    statements: tuple[Statement, ...] = fields.get("statements", ())
    criteria: tuple[Criterion, ...] = fields.get("criteria", ())
    rubric: Rubric | None = fields.get("rubric")
    if not structural and not statements and not criteria and rubric is None:
        place.note("nothing_to_decide", "has no expectations and no rubric, so its runs will be ungraded")
    # The judge and the reports know these by name, so a name must mean one thing.
    _demand_apart((one.id for one in structural), "structural expectations have the id", place)
    _demand_apart((one.criterion for one in criteria), "criteria are called", place)
    _look_at_statements(statements, place)
    if criteria and not any(one.required for one in criteria):
        place.warn("no_required", "no criterion is required, so the case can never fail")
    if rubric is not None:
        _look_at_rubric(rubric, place)


def _demand_apart(names: Iterable[str], what: str, place: Place) -> None:
    for name in _repeated(names):
        place.error("duplicate_name", f"two {what} {name!r}; call one of them otherwise")


def _repeated(names: Iterable[str]) -> list[str]:
    seen: set[str] = set()
    again: dict[str, None] = {}
    for name in names:
        if name in seen:
            again[name] = None
        seen.add(name)
    return list(again)


def _look_at_statements(statements: tuple[Statement, ...], place: Place) -> None:
    if any(not one.text.strip() for one in statements):
        place.error("empty_text", "one of the statements is empty; there is nothing to judge")
    for text in _repeated(one.text for one in statements):
        place.warn("duplicate_statement", f"says {_short(text)} twice; it will count twice")


def _look_at_rubric(rubric: Rubric, place: Place) -> None:
    _demand_apart((one.name for one in rubric.dimensions), "dimensions are called", place)
    for dimension in rubric.dimensions:
        _look_at_dimension(dimension, place)
    weights = [1 if one.weight is None else one.weight for one in rubric.dimensions]
    if weights and all(weight == 0 for weight in weights):
        place.error("bad_weight", "all dimensions weigh 0, so the rubric has no mean")


def _look_at_dimension(dimension: Dimension, place: Place) -> None:
    if dimension.weight is not None and dimension.weight < 0:
        place.error("bad_weight", f"dimension {dimension.name!r} weighs less than 0")
    strange = sorted(dimension.scoring.keys() - {"1", "2", "3", "4", "5"})
    if strange:
        place.warn("bad_anchor", f"dimension {dimension.name!r} describes the score {strange[0]!r}; scores are 1 to 5")


def _short(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
