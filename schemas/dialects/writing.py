"""Writing a canonical document in a dialect."""

from pydantic import JsonValue

from schemas.dialects.reading import DIALECTS, Document
from schemas.dialects.shape import Shape
from schemas.kinds import Dialect


class NotWritten(ValueError):
    """The dialect has no such document."""


def shape_for(document: Document, dialect: Dialect) -> Shape:
    """The table for this document in this dialect; raises NotWritten."""
    shapes = DIALECTS.get(dialect)
    if shapes is None:
        raise NotWritten(f"{dialect} is read only; write one of {', '.join(DIALECTS)}")
    for shape in shapes.values():
        if isinstance(document, shape.model):
            return shape
    known = ", ".join(shapes)
    raise NotWritten(f"the {dialect} dialect has no {type(document).__name__.lower()}; it has {known}")


def write(document: Document, dialect: Dialect) -> JsonValue:
    """The JSON value of a document; what was read in a dialect is written in it as it was."""
    return shape_for(document, dialect).write(document)
