"""Everything that can go wrong, as one tree.

    AssayError
    ├── BadInput            the user gave us something we cannot use          exit 3, HTTP 4xx
    │   ├── NotFound        no such batch, comparison, run, skill, file
    │   └── Conflict        it exists, but is not in a state that allows this
    ├── CannotDecide        the work ran, the answer is not clear             exit 2
    ├── Unavailable         a part we need does not answer; trying again may help
    └── StageFailed         a run's stage ended in a named outcome

A message says what, which one and what to do, in lower case without a full stop.
"""

from collections.abc import Mapping
from typing import Any

from schemas.states import Outcome


class AssayError(Exception):
    """Anything Assay raises on purpose."""


class BadInput(AssayError):
    """What was given cannot be used; the message says where and what to do."""


class NotFound(BadInput):
    """There is no such thing, or it is not yours."""


class Conflict(BadInput):
    """The thing is there but not in a state that allows this."""


class CannotDecide(AssayError):
    """The work was done and the answer is not clear."""


class Unavailable(AssayError):
    """A database, broker, sandbox or model does not answer; trying again later may help."""


class StageFailed(AssayError):
    """A stage of a run ended in a named outcome that is no score; `files` and `facts` of the run are worth keeping."""

    def __init__(
        self,
        outcome: Outcome,
        message: str,
        files: Mapping[str, bytes] | None = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        self.outcome = outcome
        self.files = dict(files or {})
        self.facts = dict(facts or {})
        super().__init__(message)
