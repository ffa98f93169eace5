"""`assay history`: the versions of a skill and how they fared."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from cli.connection import open_desk
from cli.options import Data, Server
from service.documents import to_json
from service.errors import BadInput

EXAMPLES = """
Examples:

  assay history my-skill

  assay history my-skill --dialect cases -o history.json
"""


class HistoryDialect(StrEnum):
    """The dialects that have a history.json."""

    SKILL_CREATOR = "skill_creator"
    CASES = "cases"


def history(
    skill: Annotated[str, typer.Argument(help="The skill's name.")],
    dialect: Annotated[HistoryDialect, typer.Option(help="Whose history.json it is.")] = HistoryDialect.SKILL_CREATOR,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write it here.")] = None,
    server: Server = None,
    data: Data = None,
) -> None:
    """Print history.json of a skill: every version, its figures, and how it did against its parent."""
    with open_desk(server, data) as desk:
        found = to_json(desk.history(skill, dialect))
    if output is None:
        print(found.decode(), end="")
        return
    try:
        output.write_bytes(found)
    except OSError as error:
        raise BadInput(f"{output} cannot be written: {error.strerror or error}") from error
    typer.echo(f"wrote {output}", err=True)
