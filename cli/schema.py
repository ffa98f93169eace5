"""`assay schema`: the JSON Schema of a document."""

import json
from typing import Annotated

import typer

from schemas.dialects import Dialect, Kind
from schemas.dialects.published import dialects_of, json_schema
from service.errors import BadInput

EXAMPLES = """
Examples:

  assay schema evals

  assay schema grading --dialect cases > grading.schema.json
"""

_DOCUMENTS = [kind for kind in Kind if dialects_of(kind)]


def schema(
    document: Annotated[str, typer.Argument(metavar="DOCUMENT", help=f"One of {', '.join(_DOCUMENTS)}.")],
    dialect: Annotated[
        str | None, typer.Option(metavar="DIALECT", help="skill_evaluator, skill_creator or cases.")
    ] = None,
) -> None:
    """Print the JSON Schema of a document; without a dialect, the richest one that has it."""
    if document not in _DOCUMENTS:
        raise BadInput(f"no document is called {document!r}; there are {', '.join(_DOCUMENTS)}")
    kind = Kind(document)
    offered = dialects_of(kind)
    if dialect is not None and dialect not in offered:
        raise BadInput(f"{document} is written in {', '.join(offered)}, not in {dialect!r}")
    print(json.dumps(json_schema(kind, Dialect(dialect) if dialect else offered[0]), indent=2, ensure_ascii=False))
