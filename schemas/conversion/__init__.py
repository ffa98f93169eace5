"""From one dialect to another by way of the canonical form, saying what is lost on the way."""

from dataclasses import dataclass
from typing import cast

from pydantic import JsonValue

from schemas.conversion.gradings import convert_grading
from schemas.conversion.histories import convert_history
from schemas.conversion.losses import Losses, losses_between, plain
from schemas.conversion.suites import convert_suite
from schemas.dialects.place import Place, path_of
from schemas.dialects.reading import Document, Reading
from schemas.dialects.writing import NotWritten, shape_for
from schemas.findings import Finding, Level
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
    findings: list[Finding] = []
    value = shape.write(changed)
    shape.read(value, Place(findings))
    # An unknown key may be one of the target's, with a value that means nothing there.
    value = _without(value, {one.path for one in findings if one.level is Level.ERROR}, ())
    again: Document = shape.read(value, Place([]))
    losses_between(changed, plain(again), "", losses)
    return Conversion(value, losses.findings())


def _without(value: JsonValue, paths: set[str], at: tuple[str | int, ...]) -> JsonValue:
    """The value without what stands at those JSON paths."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not paths or not parts:
        return value
    kept = {part: _without(item, paths, (*at, part)) for part, item in parts if path_of((*at, part)) not in paths}
    return cast(JsonValue, kept if isinstance(value, dict) else list(kept.values()))


def _rewritten(document: Document, to: Dialect, losses: Losses) -> Document:
    """The document in the target's words, still in canonical form."""
    if isinstance(document, Suite):
        return convert_suite(document, to, losses)
    if isinstance(document, Grading):
        return convert_grading(document, to, losses)
    if isinstance(document, History):
        return convert_history(document, to, losses)
    return document
