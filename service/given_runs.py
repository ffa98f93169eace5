"""Accepting a batch whose runs are given: they come with their artifacts and are never executed."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.exc import IntegrityError

from schemas.findings import Finding
from schemas.states import BatchState
from schemas.suite import Suite
from service import log
from service.errors import BadInput
from service.storage.artifacts import ArtifactStore
from service.storage.rows import NewRun, SkillVersionRow, new_id
from service.storage.store import Store, Submit, database_errors
from service.submitting import MAX_RUNS, Accepted, repeat_of, suite_rows


@dataclass(frozen=True)
class GivenSuite:
    """What the runs are graded against, as a file and as what was read from it."""

    suite: Suite
    dialect: str
    raw: bytes


@dataclass(frozen=True)
class GivenBatch:
    """A batch of given runs, ready to be written."""

    team: str
    suite: GivenSuite
    settings: Mapping[str, dict[str, Any]]
    version: Callable[[Submit], SkillVersionRow]  # asked inside the transaction
    runs: Callable[[SkillVersionRow], Sequence[NewRun]]
    findings: tuple[Finding, ...] = ()
    control_version_id: str | None = None
    regrade_of: str | None = None
    idempotency_key: str | None = None
    said: Mapping[str, Any] = field(default_factory=dict)  # what tells a repeat from another request


class GivenRuns:
    """Writes given runs down, in the one transaction in which their batch is accepted."""

    def __init__(self, store: Store, artifacts: ArtifactStore) -> None:
        self._store = store
        self._artifacts = artifacts

    def accept(self, batch: GivenBatch) -> Accepted:
        """Accept a batch whole or not at all; the same idempotency key and content give the same batch."""
        self._artifacts.put(batch.suite.raw)
        digest = _digest(batch)
        with database_errors():
            team = self._store.teams.named(batch.team).id
            try:
                known = repeat_of(self._store, team, batch.idempotency_key, digest)
                return known or self._write(team, batch, digest)
            except IntegrityError:
                # The same key came twice at once, and the other one was first.
                if known := repeat_of(self._store, team, batch.idempotency_key, digest):
                    return known
                raise

    def _write(self, team_id: str, batch: GivenBatch, digest: str) -> Accepted:
        batch_id = new_id()
        with self._store.submit(team_id) as submit:
            version = batch.version(submit)
            runs = batch.runs(version)
            if len(runs) > MAX_RUNS:
                raise BadInput(f"this batch would have more than {MAX_RUNS:,} runs; bring it in parts")
            iteration = submit.next_iteration(version.skill)
            row = {
                "id": batch_id,
                "suite_id": submit.suite(*suite_rows(batch.suite.suite, batch.suite.dialect, batch.suite.raw)),
                "skill_version_id": version.id,
                "control_version_id": batch.control_version_id,
                "iteration": iteration,
                "state": BatchState.ACCEPTED,
                "settings": dict(batch.settings),
                "inputs": {},
                "regrade_of": batch.regrade_of,
                "idempotency_key": batch.idempotency_key,
                "request_digest": digest,
            }
            submit.batch(row, runs)
        log.info("batch of given runs accepted", batch=batch_id, runs=len(runs), skill=version.skill)
        return Accepted(batch_id, len(runs), version.label, iteration, batch.findings)


def was_simulated(execution: bytes | None, otherwise: bool) -> bool:
    """Whether a run was executed by a simulator, as its execution.json says; what a judge was does not count."""
    try:
        said = json.loads(execution) if execution is not None else None
    except (ValueError, RecursionError):
        said = None
    value = said.get("simulated") if isinstance(said, dict) else None
    return value if isinstance(value, bool) else otherwise


def _digest(batch: GivenBatch) -> str:
    """What a repeat of this request has in common with it."""
    parts = [hashlib.sha256(batch.suite.raw).hexdigest(), batch.regrade_of, dict(batch.said)]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
