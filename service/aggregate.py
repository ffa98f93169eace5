"""The stage `aggregate`: what a finished batch comes to, streamed from its runs' artifacts."""

import io
import math
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import IO, Any

from sqlalchemy.exc import SQLAlchemyError

from schemas.grading import Grading
from schemas.metrics import Metrics
from schemas.states import Outcome
from schemas.structural import Structural
from schemas.suite import Case
from schemas.timing import Timing
from service import log
from service.aggregation.benchmark import Aggregates, aggregate
from service.aggregation.history import history_figures
from service.aggregation.markdown import benchmark_markdown
from service.aggregation.records import Arm, BatchPlan, CaseFacts, RunRecord, Tokens
from service.batch_settings import SKILL_PATH, is_given
from service.comparing.analyst import Analyst
from service.documents import to_json
from service.errors import AssayError, NotFound
from service.judge import judge_models
from service.regraded import case_key, key_of, regrade_document
from service.reporting.excerpts import Limits
from service.reporting.page import write_report
from service.run_files import RunFiles
from service.storage.artifacts import ArtifactStore
from service.storage.rows import BatchRow, RunRow
from service.storage.store import Store
from service.workspaces.reading import case_facts

REGRADE = "regrade.json"
HISTORY_FIGURES = "history-figures.json"  # nobody fetches it: it spares a history the benchmarks
_CASES_AT_ONCE = 10  # asked for together
_RUNS_AT_ONCE = 200  # held together, with their facts and the names of their files


FILES = ("benchmark.json", "benchmark.md", "eval_feedback_aggregate.json", "report.html")


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


class Aggregate:
    """Builds the files of a batch's aggregate."""

    def __init__(self, store: Store, artifacts: ArtifactStore, analyst: Analyst) -> None:
        self._store = store
        self._artifacts = artifacts
        self._analyst = analyst
        self.stored = StoredArtifacts(store, artifacts)

    def __call__(self, batch_id: str, folder: Path) -> None:
        """Write the files of the aggregate into the folder."""
        with self.aggregates(batch_id, may_ask=True) as found:
            for name in FILES:
                self._keep(folder / name, batch_id, found)
            (folder / HISTORY_FIGURES).write_bytes(to_json(history_figures(found)))
            if found.plan.provenance["regrade_of"]:
                (folder / REGRADE).write_bytes(to_json(self._regraded(batch_id, found)))

    def _keep(self, path: Path, batch_id: str, found: Aggregates) -> None:
        """Write one file. A page that cannot be drawn must not cost the benchmark: it is tried again when asked for."""
        try:
            with path.open("wb") as out:
                self.write(path.name, batch_id, found, out)
        except (AssayError, SQLAlchemyError, OSError):
            raise
        except Exception as error:
            if path.name != "report.html":
                raise
            log.error("report broke", with_traceback=True, reason=str(error))
            path.unlink()

    def write(self, name: str, batch_id: str, found: Aggregates, out: IO[bytes]) -> None:
        """Write one of FILES."""
        if name == "benchmark.json":
            found.write_benchmark(out)
        elif name == "eval_feedback_aggregate.json":
            found.write_feedback(out)
        elif name == "benchmark.md":
            out.write(benchmark_markdown(found).encode("utf-8", "replace"))
        else:
            batch = self._batch(batch_id)
            shown = self.records(batch, self.cases(batch), Limits().runs_of_each_arm(found))
            write_report(found, shown, self.stored, out)

    def _regraded(self, batch_id: str, found: Aggregates) -> dict[str, Any]:
        """Old beside new."""
        new = self._store.batches.one(batch_id)
        old = self._store.batches.one(new.regrade_of) if new and new.regrade_of else None
        assert new is not None and old is not None
        with self.aggregates(old.id) as before:
            return regrade_document(old.id, (before.run_summary, found.run_summary), self._pairs(old, new))

    def _pairs(self, old: BatchRow, new: BatchRow) -> Iterator[tuple[RunRecord, RunRecord]]:
        """Every run as it was and as it is, a case at a time."""
        cases = self.cases(old)
        places = {case_key(case): position for position, case in enumerate(cases)}
        for case, regraded in groupby(self.records(new, self.cases(new)), lambda run: run.case):
            place = places[case_key(case)]
            before = {key_of(run): run for run in self._records(old, cases, (place, place))}
            yield from ((before[key], run) for run in regraded if (key := key_of(run)) in before)

    def aggregates(self, batch_id: str, may_ask: bool = False) -> "Closing":
        """The aggregate of a batch as far as it is; an interim one says so. Only the stage itself asks the analyst."""
        batch = self._batch(batch_id)
        facts = self.cases(batch)
        found = aggregate(self.records(batch, facts), self._plan(batch, facts))
        return Closing(self._analysed(found, batch, may_ask))

    def _analysed(self, found: Aggregates, batch: BatchRow, may_ask: bool) -> Aggregates:
        """With the analyst's notes and actions, where a judge is set and nobody switched the analyst off."""
        models = judge_models(batch.setting)
        # A batch of an earlier version knows no analyst.
        is_wanted = batch.settings.get("analyst", {"value": False})["value"]
        if not models or not is_wanted or batch.cancelled_at is not None:
            return found
        return self._analyst.added(found, batch.id, batch.team_id, models[0], may_ask)

    def _batch(self, batch_id: str) -> BatchRow:
        batch = self._store.batches.one(batch_id)
        if batch is None:
            raise NotFound(f"there is no batch {batch_id}")
        return batch

    def suite(self, batch: BatchRow) -> bytes:
        """The batch's suite as it was given."""
        suite = self._store.teams.suite(batch.suite_id)
        assert suite is not None
        return self._artifacts.get(suite["digest"])

    def cases(self, batch: BatchRow) -> list[CaseFacts]:
        """The batch's cases, in the order of the suite."""
        return [case_facts(Case.model_validate_json(body)) for body in self._store.teams.cases(batch.suite_id)]

    def _plan(self, batch: BatchRow, cases: list[CaseFacts]) -> BatchPlan:
        version = self._store.teams.skill_version(batch.skill_version_id)
        suite = self._store.teams.suite(batch.suite_id)
        control = self._store.teams.skill_version(batch.control_version_id) if batch.control_version_id else None
        assert version is not None and suite is not None
        return BatchPlan(
            skill_name=version.skill,
            timestamp=datetime.fromtimestamp(batch.created_at, UTC)
            .isoformat(timespec="seconds")
            .replace("+00:00", "Z"),
            arms=tuple(Arm(*arm) for arm in self._store.runs.arms(batch.id)),
            skill_path=batch.settings.get(SKILL_PATH, {}).get("value"),
            executor_model=batch.setting("executor_model"),
            cases=tuple(cases),
            # Of given runs nobody planned more than there are.
            runs_per_configuration=None if is_given(batch.settings) else batch.setting("runs_per_eval"),
            provenance={
                "batch_id": batch.id,
                "skill_digest": version.digest,
                "skill_version": version.label,
                "git_hash": version.git_hash,
                "control_digest": control.digest if control else None,
                "control_version": control.label if control else None,
                "suite_digest": suite["digest"],
                "suite_dialect": suite["dialect"],
                "runner": batch.setting("runner"),
                "executor_model": batch.setting("executor_model"),
                "judge_model": batch.setting("judge_model"),
                "regrade_of": batch.regrade_of,
                "settings": {name: dict(entry) for name, entry in batch.settings.items()},
            },
            iteration=batch.iteration,
            is_interim=batch.finished_at is None and batch.state not in ("aggregating",),
        )

    def records(self, batch: BatchRow, cases: list[CaseFacts], of_each_arm: int | None = None) -> Iterator[RunRecord]:
        """Every settled run in the order of a report, or the first few of each arm of each case.

        `paths` names the run, for those who want its artifacts.
        """
        for first in range(0, len(cases), _CASES_AT_ONCE):
            yield from self._records(batch, cases, (first, first + _CASES_AT_ONCE - 1), of_each_arm)

    def _records(
        self, batch: BatchRow, cases: list[CaseFacts], places: tuple[int, int], of_each_arm: int | None = None
    ) -> Iterator[RunRecord]:
        for page in self._pages(batch, places):
            settled = [run for run in page if run.outcome is not None and run.run_number <= (of_each_arm or math.inf)]
            files = self._store.runs.files_of([run.id for run in settled])
            for run in settled:
                yield _record(run, cases[run.case_position], RunFiles(files.get(run.id, {}), self._artifacts))

    def _pages(self, batch: BatchRow, places: tuple[int, int]) -> Iterator[list[RunRow]]:
        """The rows of some cases, so many at once: a case may have any number of runs."""
        after: RunRow | None = None
        while page := self._store.runs.of_cases(batch.id, *places, after, _RUNS_AT_ONCE):
            yield page
            if len(page) < _RUNS_AT_ONCE:
                return
            after = page[-1]


class Closing:
    """An aggregate whose spools are let go of at the end of the block."""

    def __init__(self, found: Aggregates) -> None:
        self._found = found

    def __enter__(self) -> Aggregates:
        return self._found

    def __exit__(self, *_: object) -> None:
        self._found.close()


def _record(run: RunRow, case: CaseFacts, files: RunFiles) -> RunRecord:
    facts = run.facts or {}
    return RunRecord(
        case=case,
        configuration=run.configuration,
        role=run.role,
        run_number=run.run_number,
        outcome=Outcome(run.outcome or Outcome.INFRA_ERROR),
        structural=files.document("structural.json", Structural),
        grading=files.document("grading.json", Grading),
        rejudged=tuple(filter(None, [files.document("grading-again.json", Grading)])),
        rejudge_failed=bool(facts.get("rejudge_failed")),
        metrics=files.document("metrics.json", Metrics),
        timing=files.document("timing.json", Timing),
        tokens=_tokens(facts),
        cost_usd=facts.get("cost_usd"),
        skill_used=facts.get("skill_used"),
        simulated=bool(facts.get("simulated")),
        sandbox=facts.get("sandbox"),
        reason=run.error,
        judge_failed=facts.get("judge_failed"),
        paths={"run": str(run.id)},
    )


def _tokens(facts: dict[str, Any]) -> Tokens | None:
    if facts.get("tokens") is None:
        return None
    kinds = facts.get("usage") or {}
    return Tokens(
        facts["tokens"],
        kinds.get("input_tokens"),
        kinds.get("output_tokens"),
        kinds.get("cache_read_tokens"),
        kinds.get("cache_write_tokens"),
    )
