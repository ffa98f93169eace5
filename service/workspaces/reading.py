"""A workspace as run records: what cannot be read is an outcome of its run, never a run less."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from schemas.base import CaseId
from schemas.dialects import Document, read
from schemas.eval_metadata import EvalMetadata
from schemas.grading import Grading
from schemas.metrics import Metrics
from schemas.states import Outcome
from schemas.structural import Structural
from schemas.suite import Case, Suite
from schemas.timing import Timing
from service.aggregation.records import Arm, CaseFacts, RunRecord, Tokens
from service.aggregation.scores import decisions_of
from service.errors import BadInput
from service.workspaces.folder import Folder
from service.workspaces.layout import CasePlace, Layout, RunPlace, find_layout
from service.workspaces.outcome import RunFile, outcome_of

MOST_REMARKS = 200

D = TypeVar("D", bound=Document)
_RUN_FILE = TypeAdapter(RunFile)


@dataclass(slots=True)
class Workspace:
    """A folder of runs that can be gone through once or many times."""

    folder: Folder
    layout: Layout
    suite: Suite | None = None
    remarks: list[str] = field(default_factory=list)

    @classmethod
    def open(cls, path: Path, suite: Path | None = None) -> "Workspace":
        """Look at a folder; raises BadInput when it holds no runs."""
        folder = Folder(path)
        layout = find_layout(folder)
        made = cls(folder, layout, _suite(suite) if suite else None, list(layout.remarks))
        if suite is None:
            made.suite = made._suite_beside_the_runs()
        return made

    def _suite_beside_the_runs(self) -> Suite | None:
        """The suite that an export lays beside its runs, without which weights and gated rubrics are lost."""
        path = self.layout.root / "evals.json"
        found, problem = self.document(path, Suite)
        if problem:
            self.remark(f"{problem}; the runs are aggregated without it")
        return found

    def records(self, arms: tuple[Arm, ...]) -> Iterator[RunRecord]:
        """All runs: by case, then treatment before control, then run number."""
        seen: set[CaseId] = set()
        for place in self.layout.cases:
            yield from self.records_of(place, self._facts(place, seen), arms)

    def records_of(self, place: CasePlace, facts: CaseFacts, arms: tuple[Arm, ...]) -> Iterator[RunRecord]:
        """The runs of one case, treatment before control, then by run number."""
        order = {arm.configuration: index for index, arm in enumerate(arms)}
        for run in sorted(place.runs, key=lambda run: (order.get(run.configuration, len(order)), run.number)):
            role = next((arm.role for arm in arms if arm.configuration == run.configuration), None)
            yield self._record(facts, Arm(run.configuration, role), run)

    def remark(self, text: str) -> None:
        """Keep a remark about the folder, up to a bearable number."""
        if len(self.remarks) < MOST_REMARKS:
            self.remarks.append(text)

    def document(self, path: Path, model: type[D]) -> tuple[D | None, str | None]:
        """One file of a run and, if it is there but of no use, why."""
        try:
            data = self.folder.bytes_of(path)
        except BadInput as error:
            return None, str(error)
        if data is None:
            return None, None
        reading = read(data)
        if isinstance(reading.document, model):
            return reading.document, None
        first = next((f"{f.path}: {f.message}" if f.path else f.message for f in reading.findings), None)
        return None, f"{path.name} cannot be used: {first or f'it is a {reading.kind} file'}"

    def case_of(self, place: CasePlace) -> tuple[CaseId, EvalMetadata | None]:
        """The id that a folder's case goes by, and what its eval_metadata.json says about it."""
        metadata = self._metadata(place)
        number = place.name.split("-")[1] if place.name.startswith("eval-") else ""
        named: CaseId = int(number) if number.isdecimal() and len(number) < 10 else place.name
        return (metadata.eval_id if metadata and metadata.eval_id is not None else named), metadata

    def _facts(self, place: CasePlace, seen: set[CaseId]) -> CaseFacts:
        case_id, metadata = self.case_of(place)
        if case_id in seen:
            self.remark(f"{place.name}: the id {case_id!r} is taken by another folder; {place.name!r} stands for it")
            case_id = place.name
        seen.add(case_id)
        case = next((case for case in self.suite.cases if case.id == case_id), None) if self.suite else None
        return facts_of(case_id, place.name, metadata, case)

    def _metadata(self, place: CasePlace) -> EvalMetadata | None:
        for folder in (place.path, *(path for run in place.runs for path in (run.path.parent, run.path))):
            found, problem = self.document(folder / "eval_metadata.json", EvalMetadata)
            if problem:
                self.remark(f"{place.name}: {problem}")
            if found is not None:
                return found
        return None

    def _record(self, facts: CaseFacts, arm: Arm, run: RunPlace) -> RunRecord:
        root = run.path.parent if run.path.is_file() else run.path
        own = run.path if run.path.is_file() else None
        grading_path = own or self.folder.first(root / "grading.json", root / "outputs" / "grading.json")
        grading, problem = self.document(grading_path, Grading) if grading_path else (None, None)
        structural, broken = self._part(own, root / "structural.json", Structural)
        timing, _ = self._part(own, root / "timing.json", Timing)
        metrics_path = self.folder.first(root / "outputs" / "metrics.json", root / "metrics.json")
        metrics, _ = self._part(own, metrics_path, Metrics)
        kept = self.run_file(root / "run.json") if own is None else RunFile()
        place = (facts, arm.configuration, arm.role, run.number, Outcome.SCORED)
        draft = RunRecord(*place, structural, grading, metrics=metrics, timing=timing)
        outcome, reason = outcome_of(draft, kept, problem or broken, list(decisions_of(draft)))
        return replace(
            draft,
            outcome=outcome,
            reason=reason,
            tokens=_tokens(kept, timing, grading),
            cost_usd=finite(kept.cost_usd),
            skill_used=kept.skill_used,
            simulated=kept.simulated,
            paths=self._paths(run),
        )

    def _part(self, own: Path | None, path: Path | None, model: type[D]) -> tuple[D | None, str | None]:
        """A file beside a grading; in the cases dialect nothing lies beside it."""
        return (None, None) if own or path is None else self.document(path, model)

    def run_file(self, path: Path) -> RunFile:
        """run.json of a run; an empty one when there is none that can be read."""
        try:
            data = self.folder.bytes_of(path)
            return RunFile() if data is None else _RUN_FILE.validate_json(data)
        except (BadInput, ValidationError) as error:
            self.remark(f"{path.relative_to(self.folder.root)} is ignored: {str(error).splitlines()[0]}")
            return RunFile()

    def _paths(self, run: RunPlace) -> Mapping[str, str]:
        """Where people find the run, relative to the folder."""
        return {"folder": str(run.path.relative_to(self.folder.root))}


def finite(value: float | None) -> float | None:
    """A figure that JSON can write; None for NaN and the infinities, which some files hold."""
    return value if value is None or math.isfinite(value) else None


def _tokens(kept: RunFile, timing: Timing | None, grading: Grading | None) -> Tokens | None:
    if kept.tokens is not None:
        return kept.tokens
    for source in (timing, grading.timing if grading else None):
        if source is not None and source.total_tokens is not None:
            return Tokens(source.total_tokens)
    return None


def facts_of(case_id: CaseId, folder: str, metadata: EvalMetadata | None, case: Case | None) -> CaseFacts:
    """A case from its suite where that is known, else from what the runs say about it."""
    if case is not None:
        return case_facts(case)
    name = metadata.eval_name if metadata and metadata.eval_name else folder
    statements = tuple(s.text for s in (metadata.assertions or ())) if metadata else ()
    return CaseFacts(case_id, name, metadata.prompt if metadata else None, statements)


def case_facts(case: Case) -> CaseFacts:
    """What the aggregator needs of a suite's case."""
    dimensions = case.rubric.dimensions if case.rubric else ()
    return CaseFacts(
        case.id,
        case.name,
        case.prompt,
        (*(s.text for s in case.statements), *(c.criterion for c in case.criteria)),
        frozenset(c.criterion for c in case.criteria if c.required),
        {d.name: 1.0 if d.weight is None else float(d.weight) for d in dimensions},
    )


def _suite(path: Path) -> Suite:
    if not path.is_file():
        raise BadInput(f"{path} is not a file; give the suite's evals.json")
    reading = read(path.read_bytes())
    if not isinstance(reading.document, Suite):
        first = next((finding.message for finding in reading.findings), f"it is a {reading.kind} file")
        raise BadInput(f"{path} is not a suite: {first}")
    return reading.document
