"""structural.json: what the structural checker decided about one run."""

from schemas.base import Node, Number


class Summary(Node):
    """Counts over a list of expectations."""

    passed: int | None = None
    failed: int | None = None
    total: int | None = None
    pass_rate: Number | None = None  # None when there is nothing to check


class CheckedExpectation(Node):
    """One structural expectation, decided; `passed` is None when it could not be decided (`error` says why)."""

    text: str
    type: str
    passed: bool | None = None
    evidence: str = ""
    id: str | None = None
    critical: bool | None = None
    error: str | None = None


class Structural(Node):
    """All structural expectations of a run and the gate: False if a critical one failed, None if undecided."""

    expectations: tuple[CheckedExpectation, ...] = ()
    summary: Summary | None = None
    gate_passed: bool | None = None
