"""What teams send during a soak: small batches of several kinds, some of them cancelled, all over HTTP."""

import json
import random
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from soaking.fleet import SoakFleet

from cli.client import Client
from service.errors import AssayError, Unavailable

MOST_OPEN = 4
MODELS = {"runner": "messages", "executor_model": "simulated", "judge_model": "simulated-judge"}
# A second judgement of a sample and the analyst would blur what each run may cost.
PLAIN = {**MODELS, "rejudge_share": 0.0, "analyst": False}
KINDS: dict[str, dict[str, Any]] = {
    "checked": PLAIN,
    "statements": PLAIN,
    "one arm": {**PLAIN, "baseline_comparison": False},
    "half price": {**PLAIN, "judging": "batch"},
}


@dataclass
class Batch:
    """One submit, from the wish to the end."""

    key: str
    kind: str
    skill: Path
    settings: dict[str, Any]
    cancel_at: float | None
    batch_id: str = ""
    runs: int = 0
    is_ended: bool = False
    is_cancelled: bool = False


class Load:
    """Keeps some batches under way; what the API cannot take now is sent again with the same key."""

    def __init__(self, fleet: SoakFleet, dice: random.Random) -> None:
        self._fleet = fleet
        self._dice = dice
        self._client = Client(fleet.url, timeout_seconds=20)
        self.batches: list[Batch] = []
        self.refused = 0  # requests that a part which was down cost

    def step(self) -> None:
        """Look at what is open, and send more."""
        if not self._fleet.is_answering():
            return
        try:
            for one in self._open():
                self._advance(one)
            if len(self._open()) < MOST_OPEN:
                self.batches.append(self._wish())
        except Unavailable:
            self.refused += 1

    def drain(self, seconds: float) -> None:
        """Until all have ended; the checks say which did not."""
        deadline = time.monotonic() + seconds
        while self._open() and time.monotonic() < deadline:
            try:
                for one in self._open():
                    self._advance(one)
            except Unavailable:
                self.refused += 1
            time.sleep(0.5)

    def _open(self) -> list[Batch]:
        return [one for one in self.batches if not one.is_ended]

    def _wish(self) -> Batch:
        number = len(self.batches)
        kind = self._dice.choice(list(KINDS))
        cases = self._dice.randint(2, 6)
        skill = write_skill(self._fleet.folder / "skills" / f"soak-{number}", kind, cases)
        settings = {**KINDS[kind], "runs_per_eval": self._dice.randint(1, 3)}
        cancel_at = time.monotonic() + self._dice.uniform(0.5, 4) if self._dice.random() < 0.1 else None
        return Batch(f"soak-{number}", kind, skill, settings, cancel_at)

    def _advance(self, one: Batch) -> None:
        if not one.batch_id:
            said = self._client.submit(one.skill, settings=one.settings, idempotency_key=one.key)
            one.batch_id, one.runs = said["batch_id"], said["runs"]
        if one.cancel_at and time.monotonic() > one.cancel_at:
            self._cancel(one)
        one.is_ended = self._client.batch(one.batch_id)["state"] in ("finished", "cancelled")

    def _cancel(self, one: Batch) -> None:
        try:
            self._client.cancel(one.batch_id)
            one.is_cancelled = True
        except Unavailable:
            raise
        except AssayError:
            # It had ended before; or the API was killed after it had cancelled and before it could say so.
            one.is_cancelled = self._client.batch(one.batch_id)["state"] == "cancelled"
        one.cancel_at = None


def write_skill(folder: Path, kind: str, cases: int) -> Path:
    """A skill with a suite of that kind."""
    (folder / "evals").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: notes\ndescription: Use when writing notes.\n---\nWrite NOTES.md.\n")
    asked: dict[str, Any] = {"expectations": ["The notes are short", "The notes name their source"]}
    if kind == "checked":
        check = {"id": "S1", "type": "file_exists", "description": "notes", "pattern": "*"}
        asked["structural_expectations"] = [check]
    evals = [{"id": n, "prompt": f"{folder.name}: write notes number {n} into NOTES.md", **asked} for n in range(cases)]
    (folder / "evals" / "evals.json").write_text(json.dumps({"skill_name": "notes", "evals": evals}))
    return folder
