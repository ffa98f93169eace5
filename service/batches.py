"""What a door may ask about batches: submit, status, cancel, pause, resume, retry, results."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from schemas.states import BatchState, Outcome
from service import log
from service.batch_settings import is_given
from service.errors import Conflict, NotFound
from service.queue import Broker
from service.storage.artifacts import ArtifactStore
from service.storage.batches import RETRYABLE
from service.storage.rows import BatchRow, Blob, Progress, RunRow
from service.storage.store import Store, database_errors
from service.storage.views import BatchLine, Views
from service.submitting import Accepted, Preview, Submission, Submitting

ENDED = (BatchState.FINISHED, BatchState.CANCELLED)


@dataclass(frozen=True)
class Status:
    """How far a batch is."""

    batch: BatchRow
    progress: Progress

    @property
    def is_ended(self) -> bool:
        """Whether nothing more will happen by itself."""
        return self.batch.state in ENDED


class BatchDesk:
    """Everything a team may ask of its batches; somebody else's batch is not there."""

    def __init__(
        self,
        store: Store,
        artifacts: ArtifactStore,
        broker: Broker,
        submitting: Submitting,
        drop_judgements: Callable[[str], None] = lambda _batch_id: None,
        forget_answers: Callable[[str], None] = lambda _batch_id: None,
    ) -> None:
        """Both are about the half-price lane: requests of a cancelled batch, and answers that could not be used."""
        self._drop_judgements = drop_judgements
        self._forget_answers = forget_answers
        self._store = store
        self._artifacts = artifacts
        self._broker = broker
        self._submitting = submitting
        self._views = Views(store.engine)

    def submit(self, submission: Submission) -> Accepted:
        """Accept a batch; its first runs start as soon as admission looks."""
        accepted = self._submitting.accept(submission)
        self._broker.refill()
        return accepted

    def preview(self, submission: Submission) -> Preview:
        """What a submit would find and take, without submitting."""
        return self._submitting.preview(submission)

    def status(self, batch_id: str, team: str) -> Status:
        """State, and counts by stage and outcome."""
        batch = self._mine(batch_id, team)
        with database_errors():
            return Status(batch, self._store.batches.progress(batch_id))

    def list(self, team: str, before: str | None = None, limit: int = 50) -> Sequence[BatchRow]:
        """A page of batches, newest first."""
        with database_errors():
            return self._store.batches.of_team(self._store.teams.named(team).id, before, limit)

    def cancel(self, batch_id: str, team: str) -> None:
        """Stop everything that has not ended; what is finished is aggregated."""
        batch = self._mine(batch_id, team)
        with database_errors():
            if not self._store.batches.cancel(batch_id):
                raise Conflict(f"batch {batch_id} is {batch.state}; only a batch that still runs can be cancelled")
            if message := self._store.batches.finish_if_settled(batch_id):
                self._broker.send([message])
        self._drop_judgements(batch_id)
        log.info("batch cancelled", batch=batch_id)

    def pause(self, batch_id: str, team: str) -> None:
        """Let no waiting run start; those at work end their stage."""
        batch = self._mine(batch_id, team)
        with database_errors():
            if not self._store.batches.pause(batch_id):
                raise Conflict(f"batch {batch_id} is {batch.state}; only an accepted or running batch can be paused")
        log.info("batch paused", batch=batch_id)

    def resume(self, batch_id: str, team: str) -> None:
        """Let a paused batch go on."""
        batch = self._mine(batch_id, team)
        with database_errors():
            if not self._store.batches.resume(batch_id):
                raise Conflict(f"batch {batch_id} is {batch.state}; only a paused batch can be resumed")
        self._broker.refill()
        log.info("batch resumed", batch=batch_id)

    def retry(
        self,
        batch_id: str,
        team: str,
        outcomes: Sequence[Outcome] = RETRYABLE,
        max_cost_usd: float | None = None,
        max_tokens: int | None = None,
    ) -> int:
        """Continue failed runs at the stage that failed, with another budget if one is said; gives their number."""
        batch = self._mine(batch_id, team)
        said = {"max_cost_usd": max_cost_usd, "max_tokens": max_tokens}
        budget = {name: value for name, value in said.items() if value is not None}
        if batch.state is BatchState.AGGREGATING:
            raise Conflict(f"batch {batch_id} is being aggregated; retry when it is finished")
        if Outcome.JUDGE_ERROR in outcomes:
            self._forget_answers(batch_id)
        with database_errors():
            count = self._store.batches.retry(batch_id, outcomes, not is_given(batch.settings), budget)
        self._broker.refill()
        log.info("runs retried", batch=batch_id, count=count, **budget)
        return count

    def start_given(self, accepted: Accepted) -> Accepted:
        """Let a batch of given runs go on: to check, or to its aggregate where all of them are settled."""
        with database_errors():
            message = self._store.batches.finish_if_settled(accepted.batch_id)
        if message:
            self._broker.send([message])
        else:
            self._broker.refill()
        return accepted

    def runs(self, batch_id: str, team: str) -> Iterator[RunRow]:
        """All runs in the order of admission, a page at a time."""
        self._mine(batch_id, team)
        after = -1
        while page := self._store.runs.of_batch(batch_id, after):
            yield from page
            after = page[-1].position

    def aggregate_file(self, batch_id: str, team: str, name: str) -> bytes:
        """One file of the finished aggregate."""
        batch = self._mine(batch_id, team)
        entry = (batch.aggregate or {}).get(name)
        if entry is None:
            raise NotFound(f"batch {batch_id} is {batch.state} and has no {name} yet")
        return self._artifacts.get(entry["sha256"])

    def regraded(self, batch_id: str, team: str) -> bytes:
        """regrade.json of a regrade that has ended."""
        if self._mine(batch_id, team).regrade_of is None:
            raise Conflict(f"batch {batch_id} is no regrade: there is nothing to compare it with")
        return self.aggregate_file(batch_id, team, "regrade.json")

    def find(
        self,
        team: str,
        before: str | None = None,
        limit: int = 50,
        state: BatchState | None = None,
        skill: str | None = None,
    ) -> Sequence[BatchLine]:
        """A page of batches with the names of their skills, newest first."""
        with database_errors():
            return self._views.batches(self._store.teams.named(team).id, before, limit, state, skill)

    def find_runs(self, batch_id: str, team: str, **asked: Any) -> Sequence[RunRow]:
        """A page of runs; `asked` are the filters of Views.runs."""
        self._mine(batch_id, team)
        with database_errors():
            return self._views.runs(batch_id, **asked)

    def run(self, run_id: int, team: str) -> RunRow:
        """One run."""
        with database_errors():
            if self._views.team_of_run(run_id) != self._store.teams.named(team).id:
                raise NotFound(f"there is no run {run_id}")
            found = self._store.runs.one(run_id)
        assert found is not None
        return found

    def story(self, run_id: int, team: str) -> Sequence[dict[str, Any]]:
        """Every attempt at every stage of a run."""
        self.run(run_id, team)
        with database_errors():
            return self._store.runs.story(run_id)

    def artifacts(self, run_id: int, team: str) -> dict[str, Blob]:
        """The artifacts of a run by name."""
        self.run(run_id, team)
        with database_errors():
            return self._store.runs.files(run_id)

    def artifact(self, run_id: int, team: str, name: str) -> Blob:
        """One artifact of a run."""
        found = self.artifacts(run_id, team).get(name)
        if found is None:
            raise NotFound(f"run {run_id} has no artifact {name!r}")
        return found

    def content(self, blob: Blob) -> bytes:
        """The bytes of an artifact."""
        with database_errors():
            return self._artifacts.get(blob.sha256)

    def spent(self, batch_id: str, team: str) -> tuple[float, int]:
        """Money and tokens of a batch so far."""
        self._mine(batch_id, team)
        with database_errors():
            return self._store.ledger.spent_by_batch(batch_id)

    def skill_label(self, batch: BatchRow) -> tuple[str, str]:
        """The skill's name and the version under test."""
        with database_errors():
            version = self._store.teams.skill_version(batch.skill_version_id)
        return (version.skill, version.label) if version else ("", "")

    def _mine(self, batch_id: str, team: str) -> BatchRow:
        with database_errors():
            batch = self._store.batches.one(batch_id)
            if batch is None or batch.team_id != self._store.teams.named(team).id:
                raise NotFound(f"there is no batch {batch_id}")
        return batch
