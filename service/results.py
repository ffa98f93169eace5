"""What a batch comes to, in the forms people fetch: the report, the workspace as a zip, JUnit for CI."""

import io
import tempfile
import threading
import zipfile
from itertools import islice
from pathlib import Path
from typing import IO

from service.aggregate import Aggregate
from service.aggregation.gates import Gates, judge_gates
from service.aggregation.junit import write_junit
from service.aggregation.records import RunRecord
from service.batches import BatchDesk
from service.documents import to_json
from service.reporting.excerpts import Limits
from service.reporting.page import write_report
from service.reviews import Reviews
from service.sandbox.removal import remove_tree
from service.storage.artifacts import ArtifactStore
from service.storage.rows import BatchRow
from service.storage.store import Store, database_errors
from service.workspaces.exporting import Export

_REPORT = "report.html"


class StoredArtifacts:
    """The files of runs as exports and reports read them, from the artifact store."""

    def __init__(self, store: Store, artifacts: ArtifactStore) -> None:
        self._store = store
        self._artifacts = artifacts

    def names(self, run: RunRecord) -> list[str]:
        """The names of a run's files."""
        return list(self._store.runs.files(int(run.paths["run"])))

    def open(self, run: RunRecord, name: str) -> IO[bytes]:
        """One of them."""
        return io.BytesIO(self._artifacts.get(self._store.runs.files(int(run.paths["run"]))[name].sha256))


class Results:
    """Builds what is asked for into a file of the caller's; a batch that still runs gives an interim result."""

    def __init__(
        self, store: Store, artifacts: ArtifactStore, desk: BatchDesk, aggregate: Aggregate, reviews: Reviews
    ) -> None:
        self._store = store
        self._artifacts = artifacts
        self._desk = desk
        self._aggregate = aggregate
        self._reviews = reviews
        self._stored = StoredArtifacts(store, artifacts)
        self._drawing = threading.Lock()  # matplotlib does not like company

    def report(self, batch_id: str, team: str, out: IO[bytes]) -> None:
        """The page about a batch."""
        batch = self._desk.status(batch_id, team).batch
        kept = (batch.aggregate or {}).get(_REPORT)
        with database_errors():
            if kept:
                out.write(self._artifacts.get(kept["sha256"]))
                return
            with self._drawing, self._aggregate.aggregates(batch_id) as found:
                runs = islice(self._aggregate.records(batch, self._aggregate.cases(batch)), Limits().runs)
                write_report(found, runs, self._stored, out)

    def junit(self, batch_id: str, team: str, gates: Gates, out: IO[bytes]) -> None:
        """Gates and cases as JUnit XML."""
        self._desk.status(batch_id, team)
        with database_errors(), self._aggregate.aggregates(batch_id) as found:
            write_junit(found, judge_gates(found, gates), out)

    def export(self, batch_id: str, team: str, out: IO[bytes]) -> None:
        """The batch as a skill-creator workspace, zipped."""
        status = self._desk.status(batch_id, team)
        aside = Path(tempfile.mkdtemp(prefix="assay-export-"))
        try:
            with database_errors():
                root = self._write_workspace(status.batch, aside)
            feedback = self._reviews.document(batch_id, status.is_ended)
            (root / "feedback.json").write_bytes(to_json(feedback))
            _zip(aside, out)
        finally:
            remove_tree(aside)

    def _write_workspace(self, batch: BatchRow, aside: Path) -> Path:
        cases = self._aggregate.cases(batch)
        with self._aggregate.aggregates(batch.id) as found:
            export = Export(aside, batch.iteration, self._stored, found.plan.options)
            export.use_text_ids(cases)
            for record in self._aggregate.records(batch, cases):
                export.add(record)
            root = export.finish(found)
        # With the suite beside them, the runs can be graded or imported again and mean the same.
        suite = self._store.teams.suite(batch.suite_id)
        assert suite is not None
        (root / "evals.json").write_bytes(self._artifacts.get(suite["digest"]))
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
