"""What one judge decided about one run, by question id; this is what is stored and joined."""

from pydantic import Field

from schemas.base import Number, Word


class StatementVerdict(Word):
    """A statement, decided."""

    id: str
    passed: bool
    evidence: str


class Score(Word):
    """A criterion or a dimension, scored; a panel's mean need not be whole."""

    id: str
    score: Number
    evidence: str


class ClaimVerdict(Word):
    """Something the answer claims, and whether the material shows it."""

    claim: str
    type: str
    verified: bool
    evidence: str


class NotesSummary(Word):
    """What the agent itself flagged."""

    uncertainties: tuple[str, ...] = ()
    needs_review: tuple[str, ...] = ()
    workarounds: tuple[str, ...] = ()


class Remark(Word):
    """One way to improve the case; `about` is a question id."""

    reason: str
    about: str | None = None


class ConventionVerdict(Word):
    """A convention as the judge sees it."""

    passed: bool
    details: str


class Verdict(Word):
    """One whole answer, complete and within its ranges."""

    statements: tuple[StatementVerdict, ...] = ()  # without the control statements
    criteria: tuple[Score, ...] = ()
    dimensions: tuple[Score, ...] = ()
    claims: tuple[ClaimVerdict, ...] = ()
    notes: NotesSummary = NotesSummary()
    remarks: tuple[Remark, ...] = ()
    overall: str = ""
    conventions: dict[str, ConventionVerdict] = Field(default_factory=dict)
