"""What a stage needs to know about its run: the batch's settings, the case, the skill of the arm."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from schemas.suite import Case
from service.errors import NotFound
from service.storage.rows import BatchRow, Claim, SkillVersionRow
from service.storage.store import Store

T = TypeVar("T")
NOBODY = -1  # a fence that no claim ever has


class Remembered(Generic[T]):
    """The last few things that never change, by key; safe for many threads."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._things: OrderedDict[Any, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Any, load: Callable[[], T]) -> T:
        """The thing under the key, loaded if it is not remembered."""
        with self._lock:
            if key in self._things:
                self._things.move_to_end(key)
                return self._things[key]
        thing = load()
        with self._lock:
            self._things[key] = thing
            while len(self._things) > self._most:
                self._things.popitem(last=False)
        return thing


@dataclass(frozen=True)
class Job:
    """A claimed run with everything that was fixed at submit."""

    claim: Claim
    batch: BatchRow
    case: Case
    dialect: str
    skill: SkillVersionRow | None
    case_count: int = 1  # of the suite
    other_skill: SkillVersionRow | None = None  # of the other arm: this one must not hold what only that one has

    @property
    def run_count(self) -> int:
        """How many runs the batch has."""
        arms = 2 if self.batch.control_version_id or self.batch.setting("baseline_comparison") else 1
        return int(self.batch.setting("runs_per_eval")) * arms * self.case_count

    @property
    def inputs(self) -> list[dict[str, Any]]:
        """The staged input files of the case: name, sha256, size."""
        return self.batch.inputs.get(str(self.claim.case_position), [])


class Jobs:
    """Loads jobs; what a submit fixed is read from the database once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._batches: Remembered[BatchRow] = Remembered(200)
        self._suites: Remembered[tuple[str, int]] = Remembered(200)
        self._cases: Remembered[Case] = Remembered(2_000)
        self._skills: Remembered[SkillVersionRow] = Remembered(200)

    def load(self, claim: Claim) -> Job:
        """The job of a claim."""
        batch = self._batches.get(claim.batch_id, lambda: self._batch(claim.batch_id))
        dialect, count = self._suites.get(batch.suite_id, lambda: self._suite(batch.suite_id))
        place = (batch.suite_id, claim.case_position)
        case = self._cases.get(place, lambda: Case.model_validate_json(self._case_text(*place)))
        versions = {batch.skill_version_id, batch.control_version_id} - {claim.skill_version_id}
        other = next((self._skill(version) for version in versions if version), None)
        return Job(claim, batch, case, dialect, self._skill(claim.skill_version_id), count, other)

    def of_run(self, run_id: int) -> Job:
        """The job of a run that nobody holds: to look at, not to save."""
        run = self._store.runs.one(run_id)
        if run is None:
            raise NotFound(f"there is no run {run_id}")
        place = (run.id, run.batch_id, run.stage, NOBODY, run.attempts, run.position, run.case_position)
        arm = (run.case_label, run.configuration, run.role, run.run_number, run.skill_version_id)
        return self.load(Claim(*place, *arm, run.facts or {}, 0.0, ""))

    def _batch(self, batch_id: str) -> BatchRow:
        found = self._store.batches.one(batch_id)
        if found is None:
            raise NotFound(f"there is no batch {batch_id}")
        return found

    def _suite(self, suite_id: str) -> tuple[str, int]:
        suite = self._store.teams.suite(suite_id)
        if suite is None:
            raise NotFound(f"there is no suite {suite_id}")
        return str(suite["dialect"]), int(suite["case_count"])

    def _case_text(self, suite_id: str, position: int) -> str:
        return self._store.teams.case(suite_id, position)

    def _skill(self, version_id: str | None) -> SkillVersionRow | None:
        if version_id is None:
            return None
        return self._skills.get(version_id, lambda: self._version(version_id))

    def _version(self, version_id: str) -> SkillVersionRow:
        found = self._store.teams.skill_version(version_id)
        if found is None:
            raise NotFound(f"there is no skill version {version_id}")
        return found
