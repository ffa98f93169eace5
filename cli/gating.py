"""Gates of a batch on the command line: what is asked, what is printed and written, and the exit code."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from cli.desk import Desk, Json, written
from service.aggregation.gates import Gates
from service.aggregation.paired import Verdict

FailUnder = Annotated[float | None, typer.Option(help="gate: the treatment's score must reach this")]
MinDelta = Annotated[float | None, typer.Option(help="gate: the difference must reach this")]
NoRegression = Annotated[bool, typer.Option("--no-regression", help="gate: not worse by the margin")]
RequireVerdict = Annotated[Verdict | None, typer.Option(help="gate: the verdict must be this")]
Junit = Annotated[Path | None, typer.Option(metavar="FILE", help="write gates and cases as JUnit XML")]
Summary = Annotated[Path | None, typer.Option(metavar="FILE", help="write a summary for a pull request")]


@dataclass(frozen=True)
class Asked:
    """The gates of a command line, and where to write what they say."""

    gates: Gates
    junit: Path | None = None
    summary: Path | None = None

    @property
    def is_anything(self) -> bool:
        """Whether gates or their files were asked for."""
        return self.gates != Gates() or self.junit is not None or self.summary is not None


def judge(desk: Desk, batch_id: str, asked: Asked) -> Json:
    """Decide what was asked of the batch, and write it down where asked."""
    found = desk.gates(batch_id, asked.gates)
    if asked.summary:
        with written(asked.summary) as out:
            out.write(found["summary"].encode())
    if asked.junit:
        with written(asked.junit) as out:
            desk.save(batch_id, "junit", out, asked.gates)
    return found


def tell(found: Json) -> None:
    """One line for each gate."""
    for gate in found["results"]:
        print(f"gate {gate['name']}: {gate['state']}: {gate['sentence']}")
