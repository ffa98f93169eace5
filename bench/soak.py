"""Mixed batches over HTTP while workers, API, Redis and PostgreSQL are killed at random: nothing lost, no leak.

    python bench/soak.py [--minutes 20] [--seed 1] [--folder DIR]

Two executors, a checker, two judges, an aggregator and the API as processes of their own; PostgreSQL with fsync. For
three quarters of the time something is sent SIGKILL every 10 to 30 seconds and started again; in the last quarter the
load goes on in peace, so that growth of memory and open files can be told from warming up. Then the fleet drains and
everything is checked. Exit code 1 with a list when a promise is broken. Figures: bench/results/soak.json.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from results import save
from soaking.checks import broken_promises
from soaking.fleet import SoakFleet
from soaking.leaks import Leaks
from soaking.load import Load

from service import log

CALM_SHARE = 0.25
PROGRESS_SECONDS = 30.0


class Soak:
    """One soak from its first batch to its checks."""

    def __init__(self, folder: Path, minutes: float, seed: int) -> None:
        self.minutes = minutes
        self.dice = random.Random(seed)
        self.fleet = SoakFleet(folder)
        self.load = Load(self.fleet, random.Random(seed + 1))
        self.leaks = Leaks(self.fleet)
        self.kills: Counter[str] = Counter()
        self._told_at = 0.0

    def run(self) -> dict[str, Any]:
        """Load and kills, load alone, drain, checks."""
        began = time.monotonic()
        end = began + self.minutes * 60
        calm = end - self.minutes * 60 * CALM_SHARE
        self._until(calm, is_wild=True)
        self._tell("the kills are over")
        self._until(end, is_wild=False)
        print("draining", flush=True)
        self.load.drain(seconds=600)
        broken, counted = broken_promises(self.fleet, self.load)
        leaking, left = self.leaks.after_the_drain()
        return {
            "minutes": self.minutes,
            "batches": len(self.load.batches),
            "cancelled_batches": sum(one.is_cancelled for one in self.load.batches),
            "kills": dict(self.kills),
            **counted,
            **left,
            "broken": broken + leaking,
        }

    def _until(self, end: float, is_wild: bool) -> None:
        next_kill = time.monotonic() + self.dice.uniform(10, 30)
        while time.monotonic() < end:
            self.load.step()
            if is_wild and time.monotonic() > next_kill:
                self.kills[self.fleet.kill_one(self.dice)] += 1
                next_kill = time.monotonic() + self.dice.uniform(10, 30)
            if not is_wild:
                self.leaks.look()
            if time.monotonic() - self._told_at > PROGRESS_SECONDS:
                self._tell()
            time.sleep(0.5)

    def _tell(self, what: str = "") -> None:
        self._told_at = time.monotonic()
        ended = sum(one.is_ended for one in self.load.batches)
        killed = ", ".join(f"{name} {count}" for name, count in sorted(self.kills.items())) or "none"
        print(f"{what or 'soaking'}: {len(self.load.batches)} batches, {ended} ended; killed: {killed}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="keep everything here to look at it afterwards")
    given = parser.parse_args()
    log.configure("error", "text")
    folder = given.folder or Path(tempfile.mkdtemp(prefix="assay-soak-"))
    soak = Soak(folder, given.minutes, given.seed)
    try:
        figures = soak.run()
    finally:
        soak.fleet.remove()
    if not given.folder:
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(figures, indent=2))
    save("soak", {"seed": given.seed, **figures})
    if figures["broken"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
