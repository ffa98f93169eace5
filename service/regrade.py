"""A new batch that grades the artifacts of an old one anew: other checks, other statements or another judge."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from schemas.findings import Finding, Level
from schemas.states import BatchState, Stage
from schemas.suite import Case, Suite
from service.batch_settings import SKILL_PATH, resolve_given
from service.checks import Tools, preflight
from service.errors import BadInput, Conflict, NotFound
from service.given_runs import GivenBatch, GivenRuns, GivenSuite, was_simulated
from service.settings import Settings
from service.storage.artifacts import ArtifactStore
from service.storage.rows import DECISIONS, BatchRow, Blob, Given, NewRun, RunRow, SkillVersionRow
from service.storage.store import Store, database_errors
from service.submitting import Accepted, Refused, read_runnable

# What was fixed when the runs were executed.
EXECUTION = ("runner", "command", "executor_model", "runs_per_eval", "baseline_comparison", "execute_timeout_seconds")
# What the execution left in a run's facts; the rest is what was decided about it.
_EXECUTED_FACTS = ("seconds", "tokens", "usage", "cost_usd", "outputs", "simulated", "skill_used", "sandbox")
_PAGE = 500


@dataclass(frozen=True)
class RegradeRequest:
    """Which batch, and what is different this time."""

    batch_id: str
    team: str = "default"
    suite: bytes | None = None  # the batch's own if not given
    settings: Mapping[str, Any] = field(default_factory=dict)
    idempotency_key: str | None = None


class Regrade:
    """Makes a batch of given runs from the artifacts of another one, which stays as it was."""

    def __init__(
        self, settings: Settings, store: Store, artifacts: ArtifactStore, checks: Tools, given_runs: GivenRuns
    ) -> None:
        self._settings = settings
        self._store = store
        self._artifacts = artifacts
        self._checks = checks
        self._given_runs = given_runs

    def accept(self, request: RegradeRequest) -> Accepted:
        """Accept the new batch; raises Conflict while the old one still runs."""
        old = self._ended(request)
        before = self._suite_of(old)
        suite, findings = self._suite(request, before)
        places, remarks = match_suites(before.suite.cases, suite.suite.cases)
        with database_errors():
            runs = list(self._runs(old, places))
        if not runs:
            raise BadInput(f"the suite has no case of batch {old.id}; cases match by their id")
        version = self._version(old)
        batch = GivenBatch(
            team=request.team,
            suite=suite,
            settings=self._resolved(request, old, suite.suite),
            version=lambda _submit: version,
            runs=lambda _version: runs,
            findings=(*findings, *remarks),
            control_version_id=old.control_version_id,
            regrade_of=old.id,
            idempotency_key=request.idempotency_key,
            said=dict(request.settings),
        )
        return self._given_runs.accept(batch)

    def _ended(self, request: RegradeRequest) -> BatchRow:
        with database_errors():
            batch = self._store.batches.one(request.batch_id)
            if batch is None or batch.team_id != self._store.teams.named(request.team).id:
                raise NotFound(f"there is no batch {request.batch_id}")
        if batch.state not in (BatchState.FINISHED, BatchState.CANCELLED):
            raise Conflict(f"batch {batch.id} is {batch.state}; regrade it when it has ended")
        return batch

    def _suite_of(self, batch: BatchRow) -> GivenSuite:
        """The suite as the batch used it: from its rows, because not every suite came from a file."""
        with database_errors():
            row = self._store.teams.suite(batch.suite_id)
            cases = self._store.teams.cases(batch.suite_id)
            assert row is not None
            raw = self._artifacts.get(row["digest"])
        body = Suite.model_validate_json(row["body"])
        whole = body.model_copy(update={"cases": tuple(Case.model_validate_json(text) for text in cases)})
        return GivenSuite(whole, row["dialect"], raw)

    def _suite(self, request: RegradeRequest, before: GivenSuite) -> tuple[GivenSuite, list[Finding]]:
        if request.suite is None:
            return before, []
        suite, dialect, findings = read_runnable(request.suite)
        findings += preflight(suite, self._checks.engine, self._checks.open_sandbox)
        if any(finding.level is Level.ERROR for finding in findings):
            raise Refused(findings)
        return GivenSuite(suite, dialect, request.suite), findings

    def _resolved(self, request: RegradeRequest, old: BatchRow, suite: Suite) -> dict[str, dict[str, Any]]:
        """What was said for the old batch, and what is said now on top of it."""
        fixed = [name for name in EXECUTION if name in request.settings]
        if fixed:
            raise BadInput(f"{fixed[0]} cannot be changed by a regrade: nothing is executed again")
        said = {name: entry["value"] for name, entry in old.settings.items() if entry["source"] == "submit"}
        if "judge_model" in request.settings:
            said.pop("judge_models", None)
        said = {name: value for name, value in {**said, **request.settings}.items() if name not in EXECUTION}
        kept = {name: dict(old.settings[name]) for name in (*EXECUTION, SKILL_PATH) if name in old.settings}
        return resolve_given(said, suite.config, self._settings, kept)

    def _version(self, old: BatchRow) -> SkillVersionRow:
        with database_errors():
            found = self._store.teams.skill_version(old.skill_version_id)
        assert found is not None
        return found

    def _runs(self, old: BatchRow, places: Mapping[int, tuple[int, Case]]) -> Iterator[NewRun]:
        """Every run whose case is still asked, in the old order."""
        after, position = -1, 0
        while page := self._store.runs.of_batch(old.id, after, _PAGE):
            files = self._store.runs.files_of([run.id for run in page])
            for run in page:
                if run.case_position in places:
                    yield self._again(run, position, *places[run.case_position], files.get(run.id, {}))
                    position += 1
            after = page[-1].position

    def _again(self, run: RunRow, position: int, place: int, case: Case, files: dict[str, Blob]) -> NewRun:
        left = {name: blob for name, blob in files.items() if name not in DECISIONS}
        facts = {name: value for name, value in (run.facts or {}).items() if name in _EXECUTED_FACTS}
        if facts.get("simulated") and (execution := left.get("execution.json")):
            facts["simulated"] = was_simulated(self._artifacts.get(execution.sha256), True)
        # A run that never came to be checked has nothing to grade: it stays what it was.
        executed = run.entry is not Stage.EXECUTE
        ended = (None, None) if executed else (run.outcome, run.error)
        arm = (run.configuration, run.role, run.run_number, run.skill_version_id)
        return NewRun(position, place, str(case.id), *arm, Given(left, facts, *ended, executed))


def match_suites(old: Sequence[Case], new: Sequence[Case]) -> tuple[dict[int, tuple[int, Case]], list[Finding]]:
    """old position -> (new position, case), by id with its JSON type; and which cases are only in one of them."""
    by_id = {(type(case.id), case.id): (after, case) for after, case in enumerate(new)}
    found = {before: by_id.get((type(case.id), case.id)) for before, case in enumerate(old)}
    places = {before: place for before, place in found.items() if place is not None}
    matched = {after for after, _ in places.values()}
    findings = [
        _finding(f"evals[{after}]", f"case {case.id!r} is new: there are no runs of it to grade", "case_without_runs")
        for after, case in enumerate(new)
        if after not in matched
    ]
    findings += [
        _finding("", f"case {case.id!r} is not in the suite any more: its runs are left out", "case_left_out")
        for before, case in enumerate(old)
        if before not in places
    ]
    return places, findings


def _finding(path: str, message: str, code: str) -> Finding:
    return Finding(level=Level.WARNING, path=path, message=message, code=code)
