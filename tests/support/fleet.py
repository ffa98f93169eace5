"""A real fleet on this machine: private servers, `assay worker` processes, and a program under test with a ledger."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil

from service.bootstrap import Parts
from service.settings import Settings
from service.storage.schema import migrate
from service.submitting import Submission

# The program under test: says in the ledger that it starts, works a little, leaves a file.
AGENT = """#!/bin/bash
echo "$ASSAY_BATCH $ASSAY_CASE $ASSAY_CONFIGURATION $ASSAY_RUN $(date +%s.%N)" >> {ledger}
sleep {seconds}
echo done > answer.txt
"""


def write_skill(folder: Path, cases: int) -> Path:
    """A skill whose every case asks for one file."""
    (folder / "evals").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: tiny\ndescription: for tests\n---\nWrite answer.txt.\n")
    expectation = {
        "id": "S1",
        "type": "file_exists",
        "description": "an answer",
        "pattern": "answer.txt",
        "critical": True,
    }
    evals = [{"id": n, "prompt": f"case {n}", "structural_expectations": [expectation]} for n in range(1, cases + 1)]
    (folder / "evals" / "evals.json").write_text(json.dumps({"skill_name": "tiny", "evals": evals}))
    return folder


class Fleet:
    """Worker processes and what is needed to look at their work."""

    def __init__(self, folder: Path, database_url: str | None, broker_url: str | None, **settings: Any) -> None:
        self.folder = folder
        self.ledger = folder / "ledger.txt"
        self.ledger.touch()
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "ASSAY_DATA": str(folder / "data"),
            "ASSAY_SANDBOX": "none",
            "ASSAY_LOG_LEVEL": "info",
            "ASSAY_LEASE_SECONDS": "3",
            "ASSAY_HEARTBEAT_SECONDS": "0.5",
            "ASSAY_SWEEP_SECONDS": "0.3",
            "ASSAY_OVERTAKEN_SECONDS": "1",
            "ASSAY_MAX_ATTEMPTS": "50",
            "ASSAY_EXECUTOR_CONCURRENCY": "8",
            "ASSAY_GRACE_SECONDS": "2",
            **({"ASSAY_DATABASE_URL": database_url} if database_url else {}),
            **({"ASSAY_BROKER_URL": broker_url} if broker_url else {}),
            **{f"ASSAY_{name.upper()}": str(value) for name, value in settings.items()},
        }
        words = {
            name.removeprefix("ASSAY_").lower(): value
            for name, value in self.environment.items()
            if name.startswith("ASSAY_")
        }
        self.parts = Parts(Settings(**words))  # type: ignore[arg-type]
        self.workers: list[subprocess.Popen[bytes]] = []

    def submit(self, cases: int, runs: int, seconds: float, team: str = "default") -> str:
        """Accept a batch of cases x runs x two arms."""
        migrate(self.parts.store.engine)
        agent = self.folder / "agent.sh"
        agent.write_text(AGENT.format(ledger=self.ledger, seconds=seconds))
        skill = self.folder / f"skill-{cases}-{runs}"
        if not skill.exists():
            write_skill(skill, cases)
        settings = {"runs_per_eval": runs, "command": f"/bin/bash {agent}", "runner": "command"}
        return self.parts.desk.submit(Submission(skill, team=team, settings=settings)).batch_id

    def start(self, *roles: str) -> None:
        """Start one supervised worker for each role."""
        for role in roles or ("executor", "checker", "judge", "aggregator"):
            command = [sys.executable, "-m", "cli", "worker", role]
            with (self.folder / f"{role}.log").open("ab") as log:
                worker = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, start_new_session=True)
            self.workers.append(worker)

    def worker_processes(self) -> list[psutil.Process]:
        """The Celery processes below our supervisors, pool children included."""
        found = []
        for worker in self.workers:
            try:
                found += psutil.Process(worker.pid).children(recursive=True)
            except psutil.NoSuchProcess:
                continue
        return [process for process in found if _is_worker(process)]

    def kill_all(self) -> None:
        """SIGKILL to everything, agents at work included."""
        for worker in self.workers:
            try:
                family = [psutil.Process(worker.pid), *psutil.Process(worker.pid).children(recursive=True)]
            except psutil.NoSuchProcess:
                continue
            for process in family:
                _kill(process)
            worker.wait(10)
        self.workers.clear()

    def stop(self) -> None:
        """SIGTERM, then SIGKILL for what is left."""
        for worker in self.workers:
            worker.send_signal(signal.SIGTERM)
        deadline = time.monotonic() + 15
        while time.monotonic() < deadline and any(worker.poll() is None for worker in self.workers):
            time.sleep(0.1)
        self.kill_all()
        self.parts.close()

    def in_flight(self, batch_id: str) -> int:
        """How many runs a worker holds right now."""
        from sqlalchemy import func, select

        from service.storage.tables import runs

        held = select(func.count()).where(runs.c.batch_id == batch_id, runs.c.lease_until.is_not(None))
        with self.parts.store.engine.begin() as connection:
            return int(connection.execute(held).scalar_one())

    def wait(self, batch_id: str, seconds: float = 240, team: str = "default") -> None:
        """Until the batch has ended; says how far it came if it does not."""
        deadline = time.monotonic() + seconds
        status = None
        while time.monotonic() < deadline:
            try:
                status = self.parts.desk.status(batch_id, team)
            except Exception:  # noqa: BLE001  the database may be restarting
                time.sleep(0.2)
                continue
            if status.is_ended:
                return
            time.sleep(0.1)
        raise AssertionError(
            f"the batch did not end: {status and (status.batch.state, status.progress)}\n{self.logs()}"
        )

    def wait_for_settled(self, batch_id: str, count: int, team: str = "default") -> None:
        """Until so many runs of the batch have settled."""
        deadline = time.monotonic() + 60
        while self.parts.desk.status(batch_id, team).progress.settled < count:
            assert time.monotonic() < deadline, self.logs()
            time.sleep(0.05)

    def logs(self) -> str:
        """The end of every worker's log."""
        return "\n".join(f"--- {path.name}\n{path.read_text()[-1500:]}" for path in self.folder.glob("*.log"))

    def starts(self) -> list[tuple[str, float]]:
        """Every start of the program under test: (run, when)."""
        lines = [line.rsplit(" ", 1) for line in self.ledger.read_text().splitlines()]
        return [(run, float(when)) for run, when in lines]

    def executed_at(self, batch_id: str) -> dict[str, float]:
        """When the execution of each run was saved, by the same name as in the ledger."""
        saved = {}
        for run in self.parts.desk.runs(batch_id, "default"):
            name = f"{batch_id} {run.case_label} {run.configuration} {run.run_number}"
            done = [
                step
                for step in self.parts.store.runs.story(run.id)
                if step["stage"] == "execute" and step["result"] == "done"
            ]
            assert len(done) == 1, f"the execution of {name} was saved {len(done)} times"
            saved[name] = done[0]["ended_at"]
        return saved

    def assert_nothing_lost_and_nothing_twice(self, batch_id: str, expected: int) -> None:
        """Every run settled once in a named outcome, one aggregate, nothing executed again after it was saved."""
        runs = list(self.parts.desk.runs(batch_id, "default"))
        assert Counter(run.outcome for run in runs) == {"scored": expected}
        assert [run.attempts > 0 for run in runs] == [True] * expected
        batch = self.parts.store.batches.one(batch_id)
        assert batch is not None and batch.state == "finished" and batch.aggregate and batch.error is None
        saved = self.executed_at(batch_id)
        late = [run for run, when in self.starts() if run in saved and when > saved[run] + 0.05]
        assert not late, f"executed again after they were saved: {late[:3]}"
        assert {run for run, _ in self.starts()} == set(saved)


def _is_worker(process: psutil.Process) -> bool:
    try:
        return "workers.process" in " ".join(process.cmdline())
    except psutil.Error:
        return False


def _kill(process: psutil.Process) -> None:
    try:
        process.kill()
    except psutil.NoSuchProcess:
        return
