"""The runs a process holds: a heartbeat keeps their leases, and tells a worker when it lost one."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from service import log
from service.storage.rows import Claim
from service.storage.runs import Runs


class Held:
    """A claim while it is worked on."""

    def __init__(self, claim: Claim) -> None:
        self.claim = claim
        self._lost = threading.Event()

    def lose(self) -> None:
        """Somebody else has it now, or the batch was cancelled."""
        self._lost.set()

    def is_lost(self) -> bool:
        """Ask at safe points: then stop, nothing of it will be saved."""
        return self._lost.is_set()


class Leases:
    """Everything this process holds; one heartbeat thread for all, started with the first claim (after any fork)."""

    def __init__(self, runs: Runs, lease_seconds: float, heartbeat_seconds: float) -> None:
        self._runs = runs
        self._lease_seconds = lease_seconds
        self._heartbeat_seconds = heartbeat_seconds
        self._held: dict[tuple[int, int], Held] = {}
        self._lock = threading.Lock()
        self._beating: threading.Thread | None = None

    @contextmanager
    def hold(self, claim: Claim) -> Iterator[Held]:
        """Keep the claim's lease until the block ends."""
        held = Held(claim)
        key = (claim.run_id, claim.fence)
        with self._lock:
            self._held[key] = held
            self._start_beating()
        try:
            yield held
        finally:
            with self._lock:
                self._held.pop(key, None)

    def hand_back_all(self) -> int:
        """Let go of everything, so that others need not wait for the leases to run out; for a stopping worker."""
        with self._lock:
            everything = list(self._held.values())
        for held in everything:
            held.lose()
            self._hand_back(held.claim)
        return len(everything)

    def _hand_back(self, claim: Claim) -> None:
        """Courtesy to the next worker: a stop must not fail because the database cannot be written."""
        try:
            self._runs.hand_back(claim, 0.0, "its worker was stopped", counts=False)
        except DBAPIError as error:
            reason = type(error.orig).__name__
            log.warning("cannot hand back, the lease must run out", run=claim.run_id, reason=reason)

    def _start_beating(self) -> None:
        if self._beating is None:
            self._beating = threading.Thread(target=self._beat_for_ever, name="heartbeat", daemon=True)
            self._beating.start()

    def _beat_for_ever(self) -> None:
        pause = threading.Event()
        while not pause.wait(self._heartbeat_seconds):
            try:
                self.beat()
            except DBAPIError as error:
                log.warning("heartbeat failed, trying again", reason=type(error.orig).__name__)

    def beat(self) -> None:
        """Extend every lease we hold and mark those we lost."""
        with self._lock:
            held = dict(self._held)
        kept = self._runs.extend(held.keys(), self._lease_seconds)
        for (run_id, _fence), one in held.items():
            if run_id not in kept and not one.is_lost():
                # As a rule it was saved a moment ago; if not, somebody else has it now.
                log.info("lease gone", run=run_id, stage=one.claim.stage)
                one.lose()
