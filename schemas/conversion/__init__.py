"""From one dialect to another by way of the canonical form, saying what is lost on the way."""

from dataclasses import dataclass

from pydantic import JsonValue

from schemas.conversion.gradings import convert_grading
from schemas.conversion.histories import convert_history
from schemas.conversion.losses import Losses, losses_between, plain
from schemas.conversion.suites import convert_suite
from schemas.dialects.place import Place
from schemas.dialects.reading import Document, Reading
from schemas.dialects.writing import NotWritten, shape_for
from schemas.findings import Finding
from schemas.grading import Grading
from schemas.history import History
from schemas.kinds import Dialect
from schemas.suite import Suite

__all__ = ["Conversion", "NotWritten", "convert"]


@dataclass(frozen=True)
class Conversion:
    """A document in another dialect, and what has no place there."""

    value: JsonValue
    losses: tuple[Finding, ...]


def convert(reading: Reading, to: Dialect) -> Conversion:
    """The document of a reading in another dialect; raises NotWritten where there is no such document."""
    document = reading.document
    if document is None:
        raise NotWritten(f"there is nothing to convert in a {reading.kind} file with errors or of no dialect")
    shape = shape_for(document, to)
    if reading.dialect is to:
        return Conversion(shape.write(document), ())
    losses = Losses(to)
    changed = _rewritten(plain(document), to, losses)
    value = shape.write(changed)
    again: Document = shape.read(value, Place([]))
    losses_between(changed, plain(again), "", losses)
    return Conversion(value, losses.findings())


def _rewritten(document: Document, to: Dialect, losses: Losses) -> Document:
    """The document in the target's words, still in canonical form."""
    if isinstance(document, Suite):
        return convert_suite(document, to, losses)
    if isinstance(document, Grading):
        return convert_grading(document, to, losses)
    if isinstance(document, History):
        return convert_history(document, to, losses)
    return document
