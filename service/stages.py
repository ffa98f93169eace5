"""What the workers do: each stage reads as load, act, save, hand on."""

import random
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy.exc import DBAPIError

from schemas.states import Outcome, Stage
from service import log
from service.errors import StageFailed, Unavailable
from service.jobs import Job, Jobs
from service.judging.judgement import InLane
from service.leases import Held, Leases
from service.limits.budgets import ReservedAway
from service.limits.port import RetryLater
from service.models.port import SpendLimit
from service.queue import Broker
from service.recovery import Recovery
from service.sandbox.scratch import private_folder
from service.settings import Settings
from service.storage.artifacts import ArtifactStore
from service.storage.rows import Blob, Claim
from service.storage.runs import BUSY
from service.storage.store import Store, database_errors

_SAVE_TRIES = 8


@dataclass(frozen=True)
class End:
    """What a stage came to: the next stage, or the outcome the run settles with."""

    to: Stage
    outcome: Outcome | None = None
    error: str | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)


def settled(outcome: Outcome, error: str | None = None, **what: Any) -> End:
    """The run ends here."""
    return End(Stage.SETTLED, outcome, error, **what)


class Act(Protocol):
    """The middle of a stage: does the work and says what it came to."""

    def __call__(self, job: Job, held: Held, /) -> End:
        """Raises StageFailed for a named outcome, Unavailable for "again later"."""


class Stages:
    """Claims a run's stage, lets somebody act, saves while the fence is current, and hands on."""

    def __init__(
        self, settings: Settings, store: Store, artifacts: ArtifactStore, broker: Broker, leases: Leases, worker: str
    ) -> None:
        self._settings = settings
        self._store = store
        self._artifacts = artifacts
        self._broker = broker
        self._leases = leases
        self._worker = worker
        self._jobs = Jobs(store)
        self._refill = Coalesced(Recovery(settings, store, broker).refill)

    def work(self, run_id: int, stage: Stage, act: Act) -> None:
        """One message's worth of work; coming twice, late or for nothing does no harm."""
        with database_errors():
            claim = self._store.runs.claim(run_id, stage, self._worker, self._settings.lease_seconds)
        if claim is None:
            log.info("nothing to do", run=run_id, stage=stage)
            return
        with (
            log.bound(batch=claim.batch_id, run=run_id, stage=stage, attempt=claim.attempt),
            self._leases.hold(claim) as held,
        ):
            started = time.monotonic()
            end = self._act(claim, held, act)
            if end is not None and not held.is_lost():
                self._save(claim, end)
                log.info("stage ended", to=end.to, outcome=end.outcome, seconds=round(time.monotonic() - started, 3))

    def _act(self, claim: Claim, held: Held, act: Act) -> End | None:
        """What the stage came to; None when the run was handed back."""
        try:
            if claim.attempt > self._settings.max_attempts:
                return settled(Outcome.INFRA_ERROR, f"given up after {claim.attempt - 1} attempts")
            return act(self._jobs.load(claim), held)
        except StageFailed as failure:
            return settled(failure.outcome, str(failure), files=failure.files, facts=failure.facts)
        except InLane as travelling:
            self._not_yet(claim, travelling)
            return None
        except RetryLater as busy:
            return self._busy(claim, busy)
        except SpendLimit as limit:
            self._pause_team(claim, limit)
            return None
        except Unavailable as error:
            return self._again_later(claim, str(error))
        except Exception as error:  # noqa: BLE001  the door of a stage: a bug must end in a named outcome, not in silence
            log.error("stage broke", with_traceback=True)
            return self._again_later(
                claim, f"internal error ({type(error).__name__}); the worker's log has the details"
            )

    def _again_later(self, claim: Claim, reason: str) -> End | None:
        """Hand the run back with a growing pause; too many attempts settle it."""
        if claim.attempt >= self._settings.max_attempts:
            return settled(Outcome.INFRA_ERROR, f"given up after {claim.attempt} attempts: {reason}")
        pause = _growing(claim.attempt)
        log.warning("handed back", reason=reason, again_in=round(pause, 1))
        self._patiently(lambda: self._store.runs.hand_back(claim, pause, reason, counts=True))
        return None

    def _busy(self, claim: Claim, busy: RetryLater) -> End | None:
        """The model has no time for us, which is nobody's failure: bounded by time, not by attempts.

        Until it is tried again the run keeps no place in the window: others may ask another model.
        """
        since = self._patiently(lambda: self._store.runs.busy_since(claim))
        waited = claim.claimed_at - since if since is not None else 0.0
        if waited >= self._settings.busy_timeout_seconds:
            # The half-price lane holds its reservations for a day: money that does not come free is no broken model.
            outcome = Outcome.OVER_BUDGET if isinstance(busy, ReservedAway) else Outcome.INFRA_ERROR
            return settled(outcome, f"given up after {waited:.0f} s: {busy}")
        # The fence counts the tries: a model that names a short time again and again is asked more and more rarely.
        pause = max(busy.seconds, _growing(claim.fence))
        log.info("model busy", reason=str(busy), again_in=round(pause, 1), waited=round(waited, 1))
        hand_back = self._store.runs.hand_back
        self._patiently(lambda: hand_back(claim, pause, str(busy), counts=False, waiting=True, result=BUSY))
        return None

    def _not_yet(self, claim: Claim, travelling: InLane) -> None:
        """Nothing went wrong, the answer is just not there: no attempt, and no place in the window meanwhile."""
        log.info("not yet", reason=str(travelling), again_in=round(travelling.seconds, 1))
        pause = travelling.seconds
        self._patiently(lambda: self._store.runs.hand_back(claim, pause, str(travelling), counts=False, waiting=True))

    def _pause_team(self, claim: Claim, limit: SpendLimit) -> None:
        """The provider takes no more money: trying again would only burn attempts."""
        paused = self._patiently(lambda: self._store.batches.pause_team(limit.team))
        log.error(
            "spend limit reached, the team's batches are paused", team=limit.team, batches=paused, reason=str(limit)
        )
        self._patiently(lambda: self._store.runs.hand_back(claim, 0.0, str(limit), counts=False, waiting=True))

    def _save(self, claim: Claim, end: End) -> None:
        """Keep the files, then one transaction, then tell the others."""
        try:
            files = {name: self._artifacts.put(data) for name, data in end.files.items()}
        except Unavailable as error:
            self._again_later(claim, str(error))
            return
        saved = self._patiently(lambda: self._commit(claim, end, files))
        if saved is None:
            log.warning("lease lost, nothing saved")
            return
        if saved.message:
            self._broker.send([saved.message])
        elif saved.settled:
            self._after_settling(claim.batch_id)

    def _commit(self, claim: Claim, end: End, files: dict[str, Blob]) -> Any:
        if end.to is not Stage.SETTLED:
            return self._store.runs.advance(claim, end.to, files, end.facts)
        assert end.outcome is not None
        return self._store.runs.settle(claim, end.outcome, end.error, files, end.facts)

    def _after_settling(self, batch_id: str) -> None:
        """Outside the settling transaction: there two last finishers would miss each other."""
        if message := self._patiently(lambda: self._store.batches.finish_if_settled(batch_id)):
            self._broker.send([message])
        elif self._refill.is_due():
            self._patiently(self._refill)

    def _patiently(self, step: Callable[[], Any]) -> Any:
        """Try a step again while the database is away: finished work is worth waiting for."""
        for attempt in range(_SAVE_TRIES):
            try:
                with database_errors():
                    return step()
            except Unavailable as error:
                if attempt == _SAVE_TRIES - 1:
                    raise
                log.warning("database away, trying again", reason=str(error), attempt=attempt + 1)
                time.sleep(min(5.0, 0.2 * 2**attempt))
        return None

    def aggregate(self, batch_id: str, act: Callable[[str, Path], None]) -> None:
        """Build a batch's aggregate, once."""
        with database_errors():
            fence = self._store.batches.claim_aggregate(batch_id, self._settings.lease_seconds)
        if fence is None:
            log.info("nothing to do", batch=batch_id, stage="aggregate")
            return
        with log.bound(batch=batch_id, stage="aggregate"), self._beating(batch_id, fence):
            try:
                files = self._build(batch_id, act)
                self._patiently(lambda: self._store.batches.save_aggregate(batch_id, fence, files))
                log.info("batch ended")
            except Exception as error:  # noqa: BLE001  the door of a stage
                self._aggregate_failed(batch_id, fence, error)

    def _build(self, batch_id: str, act: Callable[[str, Path], None]) -> dict[str, Blob]:
        with private_folder() as folder:
            act(batch_id, folder)
            return {path.name: self._artifacts.put_file(path) for path in sorted(folder.iterdir())}

    def _aggregate_failed(self, batch_id: str, fence: int, error: Exception) -> None:
        log.error("aggregate broke", with_traceback=not isinstance(error, Unavailable), reason=str(error))
        attempts = self._patiently(lambda: self._store.batches.aggregate_attempts(batch_id))
        if attempts >= self._settings.max_attempts:
            reason = f"the aggregate could not be built in {attempts} attempts: {type(error).__name__}: {error}"
            self._patiently(lambda: self._store.batches.save_aggregate(batch_id, fence, {}, reason[:500]))
        else:
            self._patiently(lambda: self._store.batches.hand_back_aggregate(batch_id, fence, 2.0**attempts))

    def _beating(self, batch_id: str, fence: int) -> "Heartbeat":
        seconds = self._settings.lease_seconds
        return Heartbeat(
            self._settings.heartbeat_seconds,
            lambda: self._store.batches.extend_aggregate(batch_id, fence, seconds),
        )


def _growing(number: int) -> float:
    """Seconds to wait after the n-th try, spread so that many do not come back at once."""
    return min(30.0, 0.5 * 2.0 ** min(number, 10)) * random.uniform(0.75, 1.25)  # noqa: S311


class Heartbeat:
    """Says again and again that something still runs."""

    def __init__(self, seconds: float, beat: Callable[[], object]) -> None:
        self._seconds = seconds
        self._beat = beat
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.wait(self._seconds):
            try:
                self._beat()
            except DBAPIError as error:
                log.warning("heartbeat failed, trying again", reason=type(error.orig).__name__)


class Coalesced:
    """Runs a step for everybody who asks; who asks while it runs is served by one more round."""

    def __init__(self, step: Callable[[], None], every_seconds: float = 0.1) -> None:
        self._step = step
        self._every_seconds = every_seconds
        self._running = threading.Lock()
        self._wanted = False
        self._last = 0.0

    def is_due(self) -> bool:
        """Whether the last one is a while ago; who comes sooner is served by the next, or by the control loop."""
        return time.monotonic() - self._last >= self._every_seconds

    def __call__(self) -> None:
        self._wanted = True
        while self._wanted and self._running.acquire(blocking=False):
            try:
                self._wanted = False
                self._last = time.monotonic()
                self._step()
            finally:
                self._running.release()
