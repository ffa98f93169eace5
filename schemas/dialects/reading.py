"""Reading a file: bytes in, a canonical document and everything worth saying about it out."""

import hashlib
from dataclasses import dataclass, field
from typing import TypeAlias

from pydantic import JsonValue

from schemas.analysis import Analysis
from schemas.benchmark import Benchmark
from schemas.comparison import Comparison
from schemas.dialects import cases, skill_creator, skill_evaluator, wild
from schemas.dialects.contradictions import look_for_contradictions
from schemas.dialects.detection import Detection, detect
from schemas.dialects.parsing import has_mark, parse
from schemas.dialects.place import Place, Unusable, shown
from schemas.dialects.shape import Shape
from schemas.dialects.suites import SuiteShape
from schemas.eval_metadata import EvalMetadata
from schemas.feedback import FeedbackAggregate
from schemas.findings import Finding, Level, Unreadable
from schemas.grading import Grading
from schemas.history import History
from schemas.kinds import Dialect, Kind
from schemas.metrics import Metrics
from schemas.structural import Structural
from schemas.suite import Suite
from schemas.timing import Timing

Document: TypeAlias = (
    Suite
    | Grading
    | Benchmark
    | Timing
    | Metrics
    | EvalMetadata
    | History
    | Comparison
    | Analysis
    | Structural
    | FeedbackAggregate
)

# What we can write, by dialect; the others are read only.
DIALECTS: dict[Dialect, dict[Kind, Shape]] = {
    Dialect.SKILL_EVALUATOR: skill_evaluator.DOCUMENTS,
    Dialect.SKILL_CREATOR: skill_creator.DOCUMENTS,
    Dialect.CASES: cases.DOCUMENTS,
}


@dataclass(frozen=True)
class Reading:
    """What came of reading one file."""

    kind: Kind
    dialect: Dialect | None  # None where we have no dialect for it: trigger, unknown
    document: Document | None  # None when there is an error, and for what Assay does not run
    findings: tuple[Finding, ...]
    raw: bytes = field(repr=False)
    sha256: str  # of the raw bytes

    @property
    def ok(self) -> bool:
        """Whether the file can be used: nothing in it is an error."""
        return not any(finding.level is Level.ERROR for finding in self.findings)


def read(data: bytes) -> Reading:
    """Read a file of any kind and dialect; never raises, whatever the bytes."""
    findings: list[Finding] = []
    try:
        value = parse(data)
    except Unreadable as unreadable:
        return _reading(Detection(Kind.UNKNOWN, None), None, [unreadable.finding], data)
    place = Place(findings)
    if has_mark(data):
        place.note("byte_order_mark", "begins with a byte order mark, which is skipped")
    found = detect(value)
    document = _read_document(found, value, place)
    if any(finding.level is Level.ERROR for finding in findings):
        document = None
    return _reading(Detection(found.kind, _refined(found.dialect, findings)), document, findings, data)


def read_suite(data: bytes) -> Reading:
    """Read a file that must be a suite; anything else is an error finding."""
    reading = read(data)
    if reading.kind is Kind.EVALS or (not reading.ok and reading.kind is Kind.UNKNOWN):
        return reading
    message = f"this is a {reading.kind} file, not a suite; give the file with the prompts"
    error = Finding(level=Level.ERROR, path="", message=message, code="not_a_suite")
    return Reading(reading.kind, reading.dialect, None, (error, *reading.findings), data, reading.sha256)


def _reading(found: Detection, document: Document | None, findings: list[Finding], data: bytes) -> Reading:
    digest = hashlib.sha256(data).hexdigest()
    return Reading(found.kind, found.dialect, document, shown(findings), data, digest)


def _read_document(found: Detection, value: JsonValue, place: Place) -> Document | None:
    """The canonical document, or None with the reason among the findings."""
    if found.kind is Kind.TRIGGER:
        place.note("trigger_suite", "a trigger suite: not something Assay runs")
        return None
    if found.dialect is None:
        place.error("unknown_document", "none of the documents we know; see `assay schema` for those we do")
        return None
    try:
        document: Document = _read_as(DIALECTS[found.dialect][found.kind], value, place)
    except Unusable as unusable:
        for problem in unusable.problems:
            problem.place.error(problem.code, problem.message)
        return None
    look_for_contradictions(document, place)
    return document


def _read_as(shape: Shape, value: JsonValue, place: Place) -> Document:
    document: Document
    if isinstance(shape, SuiteShape) and isinstance(value, list):
        return shape.read_list(value, place)
    if isinstance(shape, SuiteShape) and isinstance(value, dict) and not shape.holds_cases(value):
        return shape.read_one(value, place)
    document = shape.read(value, place)
    return document


def _refined(dialect: Dialect | None, findings: list[Finding]) -> Dialect | None:
    """The dialect a file is really in: one that deviates only resembles the one whose reader read it."""
    deviations = [finding for finding in findings if finding.code in wild.DEVIATIONS]
    if dialect is None or not deviations:
        return dialect
    public = all(
        finding.code == "renamed" and finding.path.endswith((".assertions", "assertion_results"))
        for finding in deviations
    )
    return Dialect.AGENTSKILLS if public and dialect is Dialect.SKILL_CREATOR else Dialect.WILD
