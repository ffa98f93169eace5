"""A very large batch through the whole pipeline: does the rate hold, and what does every run leave behind?

    python bench/scale.py [--runs 100000] [--minutes 60] [--slots 16]

One worker per role, Redis, PostgreSQL with fsync, a simulator without latency in a process of its own. Every run is
one model call of the messages runner and one of the judge, in both arms, 100 cases. When the minutes are over the
rest is cancelled, and the batch is aggregated with what there is; what is said about more runs is then marked as
extrapolated. Figures: bench/results/scale.json.
"""

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from processes import Watch, cpu_seconds, mebibytes, wait_until
from results import save
from servers import Servers
from simulators import Simulator
from sqlalchemy import func, select, text
from support.fleet import Fleet

from service import log
from service.storage.schema import migrate
from service.storage.tables import runs
from service.submitting import Submission

ROLES = ("executor", "checker", "judge", "aggregator")
CASES = 100
SCRIPT = {"agent": [{"turns": [{"text": "The harbour is open; nothing else is known about it."}]}]}
SETTINGS = {
    "runner": "messages",
    "executor_model": "simulated",
    "judge_model": "simulated-judge",
    "rejudge_share": 0.0,
    "analyst": False,
}


@dataclass
class Place:
    """A fleet under measurement."""

    fleet: Fleet
    servers: Servers
    simulator: Simulator
    looks: list[dict[str, Any]] = field(default_factory=list)

    def families(self) -> dict[str, int]:
        """The first process of every part."""
        workers = dict(zip(ROLES, (worker.pid for worker in self.fleet.workers), strict=True))
        return workers | dict(zip(("redis", "postgresql"), self.servers.pids(), strict=True))

    def cpu_seconds(self) -> dict[str, float]:
        """What every part used so far."""
        return {name: cpu_seconds([pid]) for name, pid in self.families().items()}

    def settled(self, batch_id: str) -> int:
        """Runs that have ended."""
        return int(self.fleet.parts.store.batches.progress(batch_id).settled)

    def database_mib(self) -> float:
        """The whole database on disk."""
        with self.fleet.parts.store.engine.begin() as connection:
            size = connection.execute(text("select pg_database_size(current_database())")).scalar_one()
        return float(size) / 2**20

    def artifacts_mib(self) -> float:
        """What the artifacts take on the file system, blocks and not bytes."""
        command = ["du", "--summarize", "--block-size=1", str(self.fleet.folder / "data")]
        # A run that was stopped may still be cleared away: du then complains, and counts the rest.
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        return int(said.split()[0]) / 2**20


@contextmanager
def place(slots: int) -> Iterator[Place]:
    """Everything that is needed, warm, and removed in any case."""
    folder = Path(tempfile.mkdtemp(prefix="assay-scale-"))
    servers = Servers()
    settings = {"executor_concurrency": slots, "judge_concurrency": slots, "window": 8 * slots}
    quiet = {"log_level": "warning", "sandbox": "bwrap", "lease_seconds": 30, "heartbeat_seconds": 5}
    fleet = Fleet(folder, servers.postgres.create_database("scale"), servers.redis.url, **settings, **quiet)
    try:
        with Simulator(SCRIPT) as simulator:
            fleet.environment |= {"ANTHROPIC_BASE_URL": simulator.url, "ANTHROPIC_API_KEY": "any"}
            migrate(fleet.parts.store.engine)
            fleet.start(*ROLES)
            one = Place(fleet, servers, simulator)
            warm = submit(one, folder / "warm", 2, 1)
            wait_until(lambda: fleet.parts.desk.status(warm, "default").is_ended, 120, "the warm-up")
            yield one
    finally:
        fleet.stop()
        servers.remove()
        shutil.rmtree(folder, ignore_errors=True)


def submit(one: Place, folder: Path, cases: int, rounds: int) -> str:
    """A batch of cases x rounds x two arms."""
    (folder / "evals").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: harbours\ndescription: Use when asked about harbours.\n---\nOpen.\n")
    evals = [
        {"id": n, "prompt": f"Harbour number {n}: is it open?", "expectations": ["The harbour is said to be open"]}
        for n in range(1, cases + 1)
    ]
    (folder / "evals" / "evals.json").write_text(json.dumps({"skill_name": "harbours", "evals": evals}))
    settings = {**SETTINGS, "runs_per_eval": rounds}
    return one.fleet.parts.desk.submit(Submission(folder, settings=settings)).batch_id


def look(one: Place, batch_id: str, began: float) -> dict[str, Any]:
    """How far it is and how large everything has become."""
    seen = {
        "minute": round((time.monotonic() - began) / 60, 2),
        "settled": one.settled(batch_id),
        "database_mib": round(one.database_mib(), 1),
        "memory_mib": {name: round(mebibytes([pid]), 1) for name, pid in one.families().items()},
    }
    before = one.looks[-1] if one.looks else {"minute": 0.0, "settled": 0}
    minutes = seen["minute"] - before["minute"]
    seen["runs_per_second"] = round((seen["settled"] - before["settled"]) / 60 / minutes, 1) if minutes else 0.0
    one.looks.append(seen)
    memory = ", ".join(f"{name} {size:.0f}" for name, size in seen["memory_mib"].items())
    print(
        f"minute {seen['minute']:5.1f}: {seen['settled']:,} runs settled, {seen['runs_per_second']} a second, "
        f"database {seen['database_mib']:.0f} MiB; MiB: {memory}",
        flush=True,
    )
    return seen


def carry(one: Place, batch_id: str, total: int, minutes: float) -> None:
    """Look twice a minute until all is done or the time is over."""
    began = time.monotonic()
    look(one, batch_id, began)
    while one.looks[-1]["settled"] < total and time.monotonic() < began + minutes * 60:
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and one.settled(batch_id) < total:
            time.sleep(0.5)
        look(one, batch_id, began)


def finish(one: Place, batch_id: str) -> dict[str, Any]:
    """Cancel what is left and wait for the aggregate; how long it took and how the runs ended."""
    progress = one.fleet.parts.desk.status(batch_id, "default").progress
    if progress.settled < progress.total:
        one.fleet.parts.desk.cancel(batch_id, "default")
    wait_until(lambda: one.fleet.parts.desk.status(batch_id, "default").is_ended, 1800, "the aggregate", 0.5)
    status = one.fleet.parts.desk.status(batch_id, "default")
    with one.fleet.parts.store.engine.begin() as connection:
        ours = runs.c.batch_id == batch_id
        last = connection.execute(select(func.max(runs.c.settled_at)).where(ours)).scalar_one()
    assert status.batch.finished_at is not None
    return {
        "seconds": round(status.batch.finished_at - last, 1),
        "outcomes": {str(name): count for name, count in status.progress.outcomes.items()},
    }


def rates(one: Place, settled: int, cpu_before: dict[str, float]) -> dict[str, Any]:
    """Whether the rate held, and what a run cost; taken before what is left is cancelled."""
    quarter = max(1, (len(one.looks) - 1) // 4)
    steady = one.looks[1:]
    memory = {name: round(one.looks[-1]["memory_mib"][name] - size, 1) for name, size in first_memory(one).items()}
    cpu = {name: (used - cpu_before[name]) / settled * 1000 for name, used in one.cpu_seconds().items()}
    return {
        "settled": settled,
        "runs_per_second": round(settled / 60 / one.looks[-1]["minute"], 1),
        "first_quarter_runs_per_second": _mean([seen["runs_per_second"] for seen in steady[:quarter]]),
        "last_quarter_runs_per_second": _mean([seen["runs_per_second"] for seen in steady[-quarter:]]),
        "memory_growth_mib": memory,
        "cpu_ms_per_run": round(sum(cpu.values()), 1),
        "cpu_ms_per_run_of": {name: round(used, 2) for name, used in cpu.items()},
        "simulator_cpu_ms_per_run": round(one.simulator.cpu_seconds() / settled * 1000, 1),
    }


def sizes(one: Place, planned: int, worked: int, database: tuple[float, float]) -> dict[str, float]:
    """What a run leaves on disk: its row from the submit on, and what is added when it is worked on."""
    empty, submitted = database
    return {
        "database_kib_per_planned_run": round((submitted - empty) * 1024 / planned, 2),
        "database_kib_per_run": round((one.database_mib() - submitted) * 1024 / worked, 2),
        "artifacts_kib_per_run": round(one.artifacts_mib() * 1024 / worked, 2),
    }


def first_memory(one: Place) -> dict[str, float]:
    """After a minute or so: what a process loads on its first work is no growth."""
    found: dict[str, float] = one.looks[min(2, len(one.looks) - 1)]["memory_mib"]
    return found


def _mean(values: list[float]) -> float:
    return round(sum(values) / len(values), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--slots", type=int, default=16, help="calls at once, for the executor and for the judge")
    given = parser.parse_args()
    log.configure("error", "text")
    with place(given.slots) as one:
        empty, cpu = one.database_mib(), one.cpu_seconds()
        batch_id = submit(one, one.fleet.folder / "skill", CASES, max(1, given.runs // (2 * CASES)))
        submitted = one.database_mib()
        total = one.fleet.parts.desk.status(batch_id, "default").progress.total
        aggregator = one.families()["aggregator"]
        with Watch(lambda: mebibytes([aggregator])) as memory:
            carry(one, batch_id, total, given.minutes)
            settled = one.looks[-1]["settled"]
            figures = rates(one, settled, cpu)
            figures["aggregate"] = finish(one, batch_id)
        figures["aggregator_peak_mib"] = round(memory.most)
        worked = total - figures["aggregate"]["outcomes"].get("cancelled", 0)
        figures |= sizes(one, total, worked, (empty, submitted))
        figures["hours_for_100000_runs"] = round(100_000 / figures["runs_per_second"] / 3600, 2)
        figures["is_extrapolated"] = settled < 100_000
        print(json.dumps(figures, indent=2))
        save("scale", {"planned": total, "slots": given.slots, **figures, "looks": one.looks})


if __name__ == "__main__":
    main()
