"""The same questions as to a server, asked of the data folder of this machine."""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Unpack

from api.comparison_documents import ComparisonDocument
from api.documents import (
    AcceptedDocument,
    BatchDocument,
    BatchSummary,
    GatesDocument,
    PreviewDocument,
    ProgressDocument,
)
from cli.desk import Desk, Json, SubmitOptions, suite_bytes
from cli.simulate import MODEL, simulated
from schemas.kinds import Dialect
from schemas.states import Outcome
from service.aggregation.gates import Gates
from service.bootstrap import Parts
from service.comparisons import Wanted
from service.documents import to_json
from service.errors import NotFound
from service.regrade import RegradeRequest
from service.settings import Settings
from service.storage.batches import RETRYABLE
from service.storage.schema import migrate
from service.submitting import Accepted, Preview, Submission
from service.uploads import Parcel

_KEPT = {
    "benchmark": "benchmark.json",
    "benchmark.md": "benchmark.md",
    "feedback": "eval_feedback_aggregate.json",
    "report": "report.html",
}


class Local(Desk):
    """Acts on the database itself; who runs the batches is `assay serve` or `assay run --resume`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._team = parts.settings.team
        self.is_only_a_queue = parts.settings.is_embedded

    def close(self) -> None:
        """Close the database."""
        self._parts.close()

    def submit(self, skill: str | Path, **options: Unpack[SubmitOptions]) -> Json:
        """Accept a batch; it runs when workers do."""
        path = Path(skill)
        made = Submission(
            path,
            suite_bytes(options.get("evals")),
            self._team,
            options.get("settings") or {},
            options.get("against"),
            options.get("priority", 0),
            options.get("max_open"),
            options.get("idempotency_key"),
        )
        parcel = Parcel(path, path.name) if path.is_file() else None
        if options.get("dry_run"):
            return PreviewDocument.of(self._preview(parcel, made)).model_dump(mode="json")
        return AcceptedDocument.of(self._accept(parcel, made)).model_dump(mode="json")

    def _preview(self, parcel: Parcel | None, made: Submission) -> Preview:
        return self._parts.uploads.preview(parcel, made) if parcel else self._parts.desk.preview(made)

    def _accept(self, parcel: Parcel | None, made: Submission) -> Accepted:
        return self._parts.uploads.submit(parcel, made) if parcel else self._parts.desk.submit(made)

    def batches(self, **asked: Any) -> Iterator[Json]:
        """All batches, newest first."""
        before: str | None = None
        while page := self._parts.desk.find(self._team, before, **asked):
            yield from (BatchSummary.of(line).model_dump(mode="json") for line in page)
            before = page[-1].batch.id

    def batch(self, batch_id: str) -> Json:
        """One batch."""
        desk = self._parts.desk
        status = desk.status(batch_id, self._team)
        about = BatchDocument.about(status, desk.skill_label(status.batch), desk.spent(batch_id, self._team))
        return about.model_dump(mode="json")

    def watch(self, batch_id: str) -> Iterator[Json]:
        """Progress after progress until the batch ends."""
        while True:
            status = self._parts.desk.status(batch_id, self._team)
            yield ProgressDocument.of(status).model_dump(mode="json")
            if status.is_ended:
                return
            time.sleep(0.5)

    def cancel(self, batch_id: str) -> Json:
        """Stop everything that has not ended."""
        self._parts.desk.cancel(batch_id, self._team)
        return self.batch(batch_id)

    def pause(self, batch_id: str) -> Json:
        """Let no waiting run start."""
        self._parts.desk.pause(batch_id, self._team)
        return self.batch(batch_id)

    def resume(self, batch_id: str) -> Json:
        """Let a paused batch go on."""
        self._parts.desk.resume(batch_id, self._team)
        return self.batch(batch_id)

    def retry(
        self,
        batch_id: str,
        outcomes: Sequence[str] | None = None,
        max_cost_usd: float | None = None,
        max_tokens: int | None = None,
    ) -> int:
        """Continue runs that ended without a score."""
        known = [Outcome(name) for name in outcomes] if outcomes else RETRYABLE
        return self._parts.desk.retry(batch_id, self._team, known, max_cost_usd, max_tokens)

    def regrade(self, batch_id: str, evals: Path | None = None, settings: Mapping[str, Any] | None = None) -> Json:
        """Grade the artifacts of a batch anew; the new batch runs when workers do."""
        request = RegradeRequest(batch_id, self._team, suite_bytes(evals), settings or {})
        accepted = self._parts.desk.start_given(self._parts.regrade.accept(request))
        return AcceptedDocument.of(accepted).model_dump(mode="json")

    def gates(self, batch_id: str, gates: Gates) -> Json:
        """What gates say of a batch."""
        return GatesDocument.of(self._parts.results.gates(batch_id, self._team, gates)).model_dump(mode="json")

    def save(self, batch_id: str, what: str, out: IO[bytes], gates: Gates | None = None) -> None:
        """Write one file of a batch."""
        results = self._parts.results
        if what in _KEPT:
            results.file(batch_id, self._team, _KEPT[what], out)
        elif what == "regrade":
            out.write(self._parts.desk.regraded(batch_id, self._team))
        elif what == "export.zip":
            results.export(batch_id, self._team, out)
        elif what == "junit":
            results.junit(batch_id, self._team, gates or Gates(), out)
        else:
            status = self._parts.desk.status(batch_id, self._team)
            out.write(to_json(self._parts.reviews.document(batch_id, status.is_ended)))

    def compare(self, wanted: Mapping[str, Any]) -> Json:
        """Accept a comparison."""
        asked = Wanted(**{name: value for name, value in wanted.items() if value is not None})
        return ComparisonDocument.of(self._parts.comparisons.submit(asked, self._team)).model_dump(mode="json")

    def comparison(self, comparison_id: str) -> Json:
        """One comparison."""
        found = self._parts.comparisons.one(comparison_id, self._team)
        return ComparisonDocument.of(found).model_dump(mode="json")

    def carry_out(self, comparison_id: str) -> None:
        """Without a fleet, this process is the judge; whoever else works on the folder, one of us claims it."""
        judge = self.comparison(comparison_id)["settings"]["judge_model"]
        if self._parts.settings.is_embedded:
            with simulated(self._parts.settings, [MODEL if judge.startswith(MODEL) else judge]) as ready:
                judging = Parts(ready)
                judging.compare(comparison_id)
                judging.close()

    def comparison_file(self, comparison_id: str, name: str) -> bytes:
        """One file of a finished comparison."""
        return self._parts.comparisons.file(comparison_id, self._team, name)

    def history(self, skill: str, dialect: str) -> Json:
        """history.json of a skill."""
        found: Json = self._parts.catalogue.history(self._team, skill, Dialect(dialect))
        return found


def open_local(settings: Settings) -> Local:
    """The data folder's desk; there is none where nothing ran yet."""
    if settings.database_url is None and not (settings.data / "assay.db").exists():
        raise NotFound(
            f"{settings.data} is no data folder yet: `assay run` makes one; name another with --data, "
            "or a server with --server"
        )
    parts = Parts(settings)
    migrate(parts.store.engine)
    return Local(parts)
