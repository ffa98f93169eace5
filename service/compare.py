"""The stage `compare`: two sides of a suite, judged blind in both orders, counted, and then explained."""

import functools
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import JsonValue

from schemas.dialects import Dialect, write
from schemas.suite import Case
from service import log
from service.comparing.analysis import Known, Unblinded, analysis_question
from service.comparing.asking import AnswerStore, Asking
from service.comparing.blind import Asked, blind_question
from service.comparing.blinding import Blinding
from service.comparing.contest import Decided, Order, Vote, decide, orders, summary_document
from service.comparing.sides import CHALLENGER, CHAMPION, SIDES, Pairing, Result, form_of, last_words
from service.documents import to_json
from service.errors import NotFound, StageFailed, Unavailable
from service.judging.material import OutputFile
from service.limits.port import Purpose
from service.models.port import Models, SpendLimit
from service.run_files import RunFiles
from service.settings import Settings
from service.stages import Heartbeat
from service.storage.artifacts import ArtifactStore
from service.storage.comparisons import ComparisonClaim, ComparisonRow, Side
from service.storage.rows import Blob, SkillVersionRow
from service.storage.store import Store, database_errors

T = TypeVar("T")
R = TypeVar("R")
_CASES_AT_ONCE = 10
_PAUSE_SECONDS = 5.0  # before an attempt that failed is made again; doubled each time


class Stopped(Exception):
    """Another question of the same comparison met something that ends all of them."""


@dataclass(frozen=True)
class Made:
    """What a comparison came to."""

    files: dict[str, bytes]
    assignment: dict[str, dict[str, str]]
    result: str | None


class Compare:
    """Claims a comparison, carries it out and saves it while the fence is current."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        artifacts: ArtifactStore,
        models: Callable[[], Models],
        answers: AnswerStore,
        worker: str,
    ) -> None:
        self._settings = settings
        self._store = store
        self._artifacts = artifacts
        self._models = models
        self._answers = answers
        self._worker = worker

    def __call__(self, comparison_id: str) -> None:
        """One message's worth of work; coming twice, late or for nothing does no harm."""
        with database_errors():
            claim = self._store.comparisons.claim(comparison_id, self._worker, self._settings.lease_seconds)
        if claim is None:
            log.info("nothing to do", comparison=comparison_id, stage="compare")
            return
        lost = threading.Event()
        with log.bound(comparison=comparison_id, stage="compare"), self._beating(claim, lost):
            self._work(claim, lost)

    def _work(self, claim: ComparisonClaim, lost: threading.Event) -> None:
        row = claim.comparison
        if row.attempts > self._settings.max_attempts:
            self._fail(claim, f"given up after {row.attempts - 1} attempts: {row.error or 'the worker fell silent'}")
            return
        asking = self._asking(row, lost)
        started = time.monotonic()
        try:
            made = self._make(row, asking)
            self._save(claim, made)
            log.info("comparison ended", result=made.result, seconds=round(time.monotonic() - started, 3))
        except (StageFailed, SpendLimit, NotFound) as failure:
            if not lost.is_set():
                self._fail(claim, str(failure))
        except Unavailable as error:
            self._again_later(claim, asking, str(error), getattr(error, "retry_after_seconds", None))
        except Exception as error:  # noqa: BLE001  the door of a stage: a bug must end in a sentence, not in silence
            log.error("comparison broke", with_traceback=True)
            words = f"internal error ({type(error).__name__}); the worker's log has the details"
            self._again_later(claim, asking, words, None)

    def _asking(self, row: ComparisonRow, lost: threading.Event) -> Asking:
        return Asking(
            models=self._models,
            store=self._answers,
            purpose=Purpose.COMPARE,
            team=row.team_id,
            account=row.id,
            timeout_seconds=self._settings.judge_timeout_seconds,
            is_cancelled=lost.is_set,
        )

    def _beating(self, claim: ComparisonClaim, lost: threading.Event) -> Heartbeat:
        def beat() -> None:
            if not self._store.comparisons.extend(claim, self._settings.lease_seconds):
                lost.set()

        return Heartbeat(self._settings.heartbeat_seconds, beat)

    def _fail(self, claim: ComparisonClaim, error: str) -> None:
        log.error("comparison failed", reason=error)
        with database_errors():
            self._store.comparisons.fail(claim, error[:1_000])

    def _again_later(self, claim: ComparisonClaim, asking: Asking, reason: str, delay: float | None) -> None:
        """Hand it back; an attempt that brought answers does not count, for the next one starts behind them."""
        attempts = claim.comparison.attempts
        if attempts >= self._settings.max_attempts and not asking.paid:
            self._fail(claim, f"given up after {attempts} attempts: {reason}")
            return
        pause = delay if delay is not None else _PAUSE_SECONDS * 2 ** (attempts - 1)
        log.warning("handed back", reason=reason, again_in=round(pause, 1))
        with database_errors():
            self._store.comparisons.hand_back(claim, pause, reason[:1_000], counts=not asking.paid)

    def _save(self, claim: ComparisonClaim, made: Made) -> None:
        files = {name: self._artifacts.put(data) for name, data in made.files.items()}
        with database_errors():
            if not self._store.comparisons.finish(claim, files, made.assignment, made.result):
                log.warning("lease lost, nothing saved")

    def _make(self, row: ComparisonRow, asking: Asking) -> Made:
        job = self._load(row)
        votes = self._votes(job, asking)
        decided = decide(
            [vote for vote, _ in votes],
            len(job.pairing.pairs),
            job.pairing.excluded,
            any(simulated for _, simulated in votes),
            job.about(),
        )
        analysis, about = self._analysis(job, decided, asking)
        files = {one.file: _written(one.comparison, job.form, decided.simulated) for one in decided.cases}
        files |= analysis
        files["summary.json"] = to_json(summary_document(decided, about))
        return Made(files, decided.assignment(), decided.result)

    def _load(self, row: ComparisonRow) -> "CompareJob":
        with database_errors():
            suite = self._store.teams.suite(row.suite_id)
            cases = [Case.model_validate_json(body) for body in self._store.teams.cases(row.suite_id)]
            versions = {name: self._version(side) for name, side in _sides(row).items()}
        assert suite is not None
        return CompareJob(row, cases, form_of(str(suite["dialect"]), cases), versions, self._pairing(row, cases))

    def _version(self, side: Side) -> SkillVersionRow | None:
        return self._store.teams.skill_version(side.version_id) if side.version_id else None

    def _pairing(self, row: ComparisonRow, cases: list[Case]) -> Pairing:
        found = Pairing()
        for first in range(0, len(cases), _CASES_AT_ONCE):
            last = min(first + _CASES_AT_ONCE, len(cases)) - 1
            with database_errors():
                runs = {name: self._store.runs.of_cases(s.batch_id, first, last) for name, s in _sides(row).items()}
            for position in range(first, last + 1):
                mine = {
                    name: [
                        run
                        for run in runs[name]
                        if run.case_position == position and run.configuration == side.configuration
                    ]
                    for name, side in _sides(row).items()
                }
                found.add(position, cases[position], mine)
        return found

    def _votes(self, job: "CompareJob", asking: Asking) -> list[tuple[Vote, bool]]:
        wanted = [order for pair in job.pairing.pairs for order in orders(job.row.id, pair)]
        return in_parallel(functools.partial(self._vote, job, asking), wanted, self._settings.compare_concurrency)

    def _vote(self, job: "CompareJob", asking: Asking, order: Order) -> tuple[Vote, bool]:
        pair = order.pair
        with database_errors():
            results = {side: self._result(pair.runs[side]) for side in SIDES}
        shown = {label: results[side] for label, side in order.labels.items()}
        label = f"compare/{pair.position + 1}/{pair.run_number}"
        question = blind_question(Asked(pair.case, shown, job.blinding(pair.case), job.form, job.model, label))
        told = asking.ask(question)
        lengths = {side: result.length for side, result in results.items()}
        return Vote(order, told.value, lengths, told.kept.failure), told.kept.simulated

    def _result(self, run_id: int) -> Result:
        files = RunFiles(self._store.runs.files(run_id), self._artifacts)
        outputs = tuple(self._output(name, blob) for name, blob in sorted(files.outputs().items()))
        return Result(outputs, None if outputs else last_words(files.text("transcript.md")))

    def _output(self, name: str, blob: Blob) -> OutputFile:
        fits = blob.size <= self._settings.judge_file_max_bytes
        return OutputFile(name, blob.size, blob.sha256, self._artifacts.get(blob.sha256) if fits else None)

    def _analysis(
        self, job: "CompareJob", decided: Decided, asking: Asking
    ) -> tuple[dict[str, bytes], dict[str, JsonValue]]:
        """analysis.json and what the summary says about it; that it fails does not undo the comparison."""
        if not job.row.settings.get("analysis", True):
            return {}, {"made": False, "reason": "it was switched off"}
        if decided.winner is None:
            return {}, {"made": False, "reason": "there is no winner to explain"}
        question = analysis_question(self._unblinded(job, decided))
        asking.purpose = Purpose.ANALYZE
        told = asking.ask(question)
        if told.value is None:
            return {}, {"made": False, "reason": told.kept.failure}
        data = _written(told.value, job.form, told.kept.simulated)
        return {"analysis.json": data}, {"made": True, "prompt_version": question.prompt_version}

    def _unblinded(self, job: "CompareJob", decided: Decided) -> Unblinded:
        winner = decided.winner or CHALLENGER
        loser = CHAMPION if winner == CHALLENGER else CHALLENGER
        known = {side: self._known(job, decided, side) for side in SIDES}
        return Unblinded(known[winner], known[loser], winner, decided.cases, job.form, job.model)

    def _known(self, job: "CompareJob", decided: Decided, side: str) -> Known:
        version = job.versions[side]
        transcripts: dict[int, str] = {}
        # What the winner won tells most.
        for one in sorted(decided.cases, key=lambda one: one.winner != decided.winner)[:3]:
            run_id = one.shown.order.pair.runs[side]
            with database_errors():
                text = RunFiles(self._store.runs.files(run_id), self._artifacts).text("transcript.md")
            transcripts[one.position] = text or "(there is no transcript)"
        label = version.label if version else _sides(job.row)[side].configuration
        return Known(_sides(job.row)[side].label, label, self._skill_texts(version), transcripts)

    def _skill_texts(self, version: SkillVersionRow | None) -> dict[str, str]:
        """The skill's text files, SKILL.md first."""
        files = version.files if version else {}
        texts: dict[str, str] = {}
        for path in sorted(files, key=lambda path: (path != "SKILL.md", path)):
            if files[path]["size"] <= self._settings.judge_file_max_bytes:
                data = self._artifacts.get(files[path]["sha256"])
                if b"\0" not in data:
                    texts[path] = data.decode("utf-8", "replace")
        return texts


@dataclass(frozen=True)
class CompareJob:
    """A comparison with everything that was fixed before."""

    row: ComparisonRow
    cases: list[Case]
    form: Dialect
    versions: dict[str, SkillVersionRow | None]
    pairing: Pairing

    @property
    def model(self) -> str:
        """Who compares."""
        return str(self.row.settings["judge_model"])

    def blinding(self, case: Case) -> Blinding:
        """What must not be seen of either side."""
        known = [version for version in self.versions.values() if version]
        return Blinding({one.skill for one in known}, {one.label for one in known}, case.prompt)

    def about(self) -> dict[str, JsonValue]:
        """Who is compared with whom."""
        sides: dict[str, JsonValue] = {name: self._side(name, side) for name, side in _sides(self.row).items()}
        return {"comparison_id": self.row.id, **sides, "judge_model": self.model, "dialect": self.form.value}

    def _side(self, name: str, side: Side) -> JsonValue:
        version = self.versions[name]
        return {
            "label": side.label,
            "batch_id": side.batch_id,
            "configuration": side.configuration,
            "skill": version.skill if version else None,
            "version": version.label if version else None,
        }


def _sides(row: ComparisonRow) -> dict[str, Side]:
    return {CHALLENGER: row.challenger, CHAMPION: row.champion}


def _written(document: Any, form: Dialect, simulated: bool) -> bytes:
    if simulated:
        document = document.model_copy(update={"extra": {**document.extra, "simulated": True}})
    return to_json(write(document, form))


def in_parallel(ask: Callable[[T], R], things: Iterable[T], at_once: int) -> list[R]:
    """Ask about all of them, some at once; what ends one of them for want of a model or money ends all."""
    stop = threading.Event()

    def guarded(thing: T) -> R:
        if stop.is_set():
            raise Stopped
        try:
            return ask(thing)
        except BaseException:
            stop.set()
            raise

    with ThreadPoolExecutor(at_once, "compare") as pool:
        futures = [pool.submit(guarded, thing) for thing in things]
    failures = [error for future in futures if (error := future.exception()) and not isinstance(error, Stopped)]
    if failures:
        raise failures[0]
    return [future.result() for future in futures]
