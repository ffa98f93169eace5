"""What a check is given and what it answers."""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from schemas.metrics import Metrics
from service.errors import CannotDecide

if TYPE_CHECKING:
    from service.checks.engine import Engine
    from service.checks.scripts import Scripts
    from service.sandbox.reader import Listing


class Undecided(CannotDecide):
    """A check could not be decided; that is neither passed nor failed."""


@dataclass(frozen=True)
class Verdict:
    """Passed or not, and what was seen."""

    passed: bool
    evidence: str


class Outputs(Protocol):
    """The files of a run; `service.sandbox.reader.Reader` is one."""

    @property
    def listing(self) -> "Listing":
        """Everything there is."""

    def matching(self, pattern: str) -> list[str]:
        """The regular files that a glob names, in sorted order."""

    def read_bytes(self, path: str) -> bytes:
        """A file's content."""

    def read_text(self, path: str) -> str:
        """A file's content as text, every line end a newline."""

    def copy_to(self, destination: Path) -> None:
        """Copy everything into a new folder."""


@dataclass(frozen=True)
class Given:
    """Everything a check may look at, and the time all checks of a case have together."""

    outputs: Outputs
    transcript: str | None
    metrics: Metrics | None
    engine: "Engine"
    scripts: "Scripts"
    deadline: float = field(default_factory=lambda: time.monotonic() + 600)

    def seconds_left(self) -> float:
        """Raises Undecided when the time is used up."""
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise Undecided("the time for this case's checks was used up before this one")
        return left
