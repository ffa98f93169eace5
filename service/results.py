"""What a batch comes to, in the forms people fetch: the report, the workspace as a zip, JUnit for CI."""

import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from service.aggregate import Aggregate
from service.aggregation.gates import GateReport, Gates, judge_gates
from service.aggregation.junit import write_junit
from service.aggregation.markdown import pull_request_summary
from service.batches import BatchDesk
from service.documents import to_json
from service.reviews import Reviews
from service.sandbox.scratch import private_folder
from service.storage.artifacts import ArtifactStore
from service.storage.rows import BatchRow
from service.storage.store import database_errors
from service.workspaces.exporting import Export


@dataclass(frozen=True)
class Gated:
    """What gates say of a batch."""

    report: GateReport
    is_interim: bool
    summary: str  # for a pull request


class Results:
    """Builds what is asked for into a file of the caller's; a batch that still runs gives an interim result."""

    def __init__(self, artifacts: ArtifactStore, desk: BatchDesk, aggregate: Aggregate, reviews: Reviews) -> None:
        self._artifacts = artifacts
        self._desk = desk
        self._aggregate = aggregate
        self._reviews = reviews

    def file(self, batch_id: str, team: str, name: str, out: IO[bytes]) -> None:
        """A file of the aggregate: as it was kept when the batch ended, else as far as the batch is."""
        status = self._desk.status(batch_id, team)
        # After a retry an older aggregate is still there; it is not what the batch comes to.
        kept = (status.batch.aggregate or {}).get(name) if status.is_ended else None
        with database_errors():
            if kept:
                out.write(self._artifacts.get(kept["sha256"]))
                return
            with self._aggregate.aggregates(batch_id) as found:
                self._aggregate.write(name, batch_id, found, out)

    def gates(self, batch_id: str, team: str, gates: Gates) -> Gated:
        """What the gates say of a batch, and the summary for a reviewer."""
        self._desk.status(batch_id, team)
        with database_errors(), self._aggregate.aggregates(batch_id) as found:
            report = judge_gates(found, gates)
            return Gated(report, found.plan.is_interim, pull_request_summary(found, report))

    def junit(self, batch_id: str, team: str, gates: Gates, out: IO[bytes]) -> None:
        """Gates and cases as JUnit XML."""
        self._desk.status(batch_id, team)
        with database_errors(), self._aggregate.aggregates(batch_id) as found:
            write_junit(found, judge_gates(found, gates), out)

    def export(self, batch_id: str, team: str, out: IO[bytes]) -> None:
        """The batch as a skill-creator workspace, zipped."""
        status = self._desk.status(batch_id, team)
        with private_folder() as aside:
            with database_errors():
                root = self._write_workspace(status.batch, aside)
            feedback = self._reviews.document(batch_id, status.is_ended)
            (root / "feedback.json").write_bytes(to_json(feedback))
            _zip(aside, out)

    def _write_workspace(self, batch: BatchRow, aside: Path) -> Path:
        cases = self._aggregate.cases(batch)
        with self._aggregate.aggregates(batch.id) as found:
            export = Export(aside, batch.iteration, self._aggregate.stored, found.plan.options)
            export.use_cases(cases)
            for record in self._aggregate.records(batch, cases):
                export.add(record)
            root = export.finish(found)
        # With the suite beside them, the runs can be graded or imported again and mean the same.
        (root / "evals.json").write_bytes(self._aggregate.suite(batch))
        return root


def _zip(folder: Path, out: IO[bytes]) -> None:
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                # Dates differ from one export to the next; what is in the files does not.
                entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), (1980, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, path.read_bytes())
