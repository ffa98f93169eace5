"""What each part of a fleet takes: memory at rest and at work, processor time per run.

    python bench/footprint.py [--cases 30] [--runs 5]

Private Redis, PostgreSQL and simulator (no latency); one process of each role, the API and Flower. The model is
simulated, every run is executed by the messages runner, checked, judged and aggregated.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import psutil
from results import save
from support.fleet import Fleet
from support.servers import PostgresServer, RedisServer, free_port

from service.storage.schema import migrate
from service.submitting import Submission
from simulator import start

ROLES = ("executor", "checker", "judge", "aggregator")


def write_skill(folder: Path, cases: int) -> Path:
    (folder / "evals").mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: footprint\ndescription: Use when writing notes.\n---\nWrite NOTES.md.\n"
    )
    check = {"id": "S1", "type": "file_exists", "description": "notes", "pattern": "*"}
    asked = {"structural_expectations": [check], "expectations": ["The notes are short"]}
    evals = [{"id": n, "prompt": f"Write notes number {n} into NOTES.md", **asked} for n in range(cases)]
    (folder / "evals" / "evals.json").write_text(json.dumps({"skill_name": "footprint", "evals": evals}))
    return folder


def family(pid: int) -> list[psutil.Process]:
    try:
        return [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def memory(pid: int) -> float:
    """MiB of a process and its children, shared pages divided among those who share them."""
    total = 0
    for process in family(pid):
        try:
            total += process.memory_full_info().pss
        except psutil.Error:
            continue
    return total / 2**20


def seconds(pid: int) -> float:
    """Processor time of a process and its children, those that ended included."""
    total = 0.0
    for process in family(pid):
        try:
            times = process.cpu_times()
        except psutil.Error:
            continue
        total += times.user + times.system + times.children_user + times.children_system
    return total


def measure(fleet: Fleet, pids: dict[str, int], submission: Submission) -> tuple[dict[str, list[float]], int, float]:
    rest = {name: memory(pid) for name, pid in pids.items()}
    before = {name: seconds(pid) for name, pid in pids.items()}
    peak = dict(rest)
    begun = time.monotonic()
    accepted = fleet.parts.desk.submit(submission)
    while not fleet.parts.desk.status(accepted.batch_id, "default").is_ended:
        peak = {name: max(peak[name], memory(pid)) for name, pid in pids.items()}
        time.sleep(1)
    took = time.monotonic() - begun
    used = {name: (seconds(pid) - before[name]) * 1000 / accepted.runs for name, pid in pids.items()}
    outcomes = fleet.parts.desk.status(accepted.batch_id, "default").progress.outcomes
    print(f"{accepted.runs} runs in {took:.0f} s: {outcomes}")
    return {name: [rest[name], peak[name], used[name]] for name in pids}, accepted.runs, took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--cases", type=int, default=30)
    parser.add_argument("--runs", type=int, default=5)
    wanted = parser.parse_args()
    redis, postgres = RedisServer(), PostgresServer()
    redis.start()
    postgres.start()
    with tempfile.TemporaryDirectory() as name, start() as simulator:
        folder = Path(name)
        fleet = Fleet(folder, postgres.create_database("footprint"), redis.url)
        fleet.environment |= {"ANTHROPIC_BASE_URL": simulator.url, "ANTHROPIC_API_KEY": "any", "ASSAY_SANDBOX": "bwrap"}
        fleet.environment |= {
            "ASSAY_FLOWER_AUTH": "a:b",
            "ASSAY_LEASE_SECONDS": "30",
            "ASSAY_EXECUTOR_CONCURRENCY": "16",
        }
        migrate(fleet.parts.store.engine)
        fleet.start(*ROLES)
        others = {"api": ["serve", "--port", str(free_port())], "flower": ["flower", "--port", str(free_port())]}
        started = {}
        for what, words in others.items():
            with (folder / f"{what}.log").open("wb") as log:
                command = [sys.executable, "-m", "cli", *words]
                started[what] = subprocess.Popen(command, env=fleet.environment, stdout=log, stderr=log)
        try:
            time.sleep(12)
            pids = {role: worker.pid for role, worker in zip(ROLES, fleet.workers, strict=True)}
            pids |= {what: process.pid for what, process in started.items()}
            assert redis.process and postgres.process
            pids |= {"redis": redis.process.pid, "postgres": postgres.process.pid}
            models = {"executor_model": "simulated", "judge_model": "simulated-judge"}
            settings = {"runs_per_eval": wanted.runs, "runner": "messages", **models}
            table, runs, took = measure(
                fleet, pids, Submission(write_skill(folder / "s", wanted.cases), settings=settings)
            )
            print(f"{'':<12}{'MiB at rest':>12}{'MiB at most':>12}{'CPU ms/run':>12}")
            for what, figures in table.items():
                print(f"{what:<12}{figures[0]:>12.0f}{figures[1]:>12.0f}{figures[2]:>12.1f}")
            names = ("mib_at_rest", "mib_at_most", "cpu_ms_per_run")
            parts = {what: dict(zip(names, figures, strict=True)) for what, figures in table.items()}
            save("footprint", {"runs": runs, "seconds": round(took, 1), "parts": parts})
        finally:
            for process in started.values():
                process.terminate()
                process.wait(20)
            fleet.stop()
            redis.remove()
            postgres.remove()


if __name__ == "__main__":
    main()
