"""The JSON Schemas we publish, one per dialect and document, from the same tables that read and write."""

from pydantic import JsonValue

from schemas.dialects.reading import DIALECTS
from schemas.kinds import Dialect, Kind


def json_schema(kind: Kind, dialect: Dialect) -> dict[str, JsonValue]:
    """The schema of one document; raises KeyError where the dialect has no such document."""
    shape = DIALECTS[dialect][kind]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:assay:{dialect}:{kind}",
        "title": f"{kind} in the {dialect} dialect",
        **shape.schema(),
    }


def all_schemas() -> dict[tuple[Dialect, Kind], dict[str, JsonValue]]:
    """Every published schema."""
    return {(dialect, kind): json_schema(kind, dialect) for dialect, shapes in DIALECTS.items() for kind in shapes}


def dialects_of(kind: Kind) -> list[Dialect]:
    """The dialects that have such a document, richest first."""
    return [dialect for dialect, shapes in DIALECTS.items() if kind in shapes]
