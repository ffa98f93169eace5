"""What a run left behind for the judge, and the digest of it."""

import hashlib
import json
from dataclasses import dataclass
from functools import cached_property

from schemas.kinds import Dialect
from schemas.metrics import Metrics
from schemas.structural import Structural
from schemas.suite import Case
from schemas.timing import Timing

GRADER_TIMES = ("grader_start", "grader_end", "grader_duration_seconds")


@dataclass(frozen=True)
class OutputFile:
    """One file the agent wrote; `data` is None when it was too large to be read for the judge."""

    path: str  # relative to the outputs
    size: int
    sha256: str
    data: bytes | None = None


@dataclass(frozen=True)
class JudgeMaterial:
    """One run as the judge will see it."""

    case: Case
    dialect: Dialect
    outputs: tuple[OutputFile, ...] = ()
    transcript: str | None = None
    user_notes: str | None = None
    structural: Structural | None = None
    metrics: Metrics | None = None
    timing: Timing | None = None
    run_number: int = 1
    version: int | None = None  # the skill version's number, for the cases dialect

    @property
    def wants_conventions(self) -> bool:
        """Whether the suite's dialect carries the five convention checks."""
        return self.dialect is Dialect.CASES

    @cached_property
    def digest(self) -> str:
        """Of everything the judge sees of the run; the case is not part of it."""
        parts = [
            [[file.path, file.size, file.sha256] for file in sorted(self.outputs, key=lambda file: file.path)],
            text_digest(self.transcript),
            text_digest(self.user_notes),
            [document.model_dump_json() if document else None for document in (self.structural, self.metrics)],
            self.timing.model_dump_json() if self.timing else None,
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def text_digest(text: str | None) -> str | None:
    """The digest of a text; None for none."""
    return None if text is None else hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def before_judging(timing: Timing | None) -> Timing | None:
    """A run's timing without a grader's part: no judgement may depend on how long an earlier one took."""
    if timing is None:
        return None
    named = {name: tuple(key for key in getattr(timing, name) if key not in GRADER_TIMES) for name in ("keys", "nulls")}
    return timing.model_copy(update={**named, **dict.fromkeys(GRADER_TIMES)})


def output_file(path: str, data: bytes) -> OutputFile:
    """A file that was read whole."""
    return OutputFile(path, len(data), hashlib.sha256(data).hexdigest(), data)
