"""Assay as a contender: a fleet of one worker per role with a Redis and a PostgreSQL of its own."""

import json
import time
from pathlib import Path
from typing import Any

from contender import Contender
from processes import cpu_seconds, kill, wait_until
from servers import Servers
from sqlalchemy import func, select
from support.fleet import Fleet
from work import EXECUTOR, JUDGE, STATEMENT, Work, agent_script

from service.storage.schema import migrate
from service.storage.tables import attempts, runs
from service.submitting import Submission

ROLES = ("executor", "checker", "judge", "aggregator")


class Assay(Contender):
    """Submit to the fleet, wait until the batch is finished; after a kill start everything again."""

    name = "Assay"
    script = agent_script()
    notes = (
        "one executor, checker, judge and aggregator process, Redis, PostgreSQL with fsync, artifacts in a folder; "
        "half of the CONCURRENCY as executor slots, half as judge slots; messages runner (its system prompt and six "
        "tools are sent, no tool is used), one arm, one run per case, one statement, no second "
        "judgement, no analyst; the submit counted; warmed up by "
        "a batch of 4 cases; done when the batch is finished, its aggregate built; after the kill: start the same "
        "processes again, nothing else"
    )

    def __init__(self) -> None:
        self._servers = Servers()
        self._used = 0.0
        self._batch_id = ""
        self._fleet: Fleet | None = None
        self._skill = Path()

    @property
    def fleet(self) -> Fleet:
        """There from `prepare` on."""
        assert self._fleet is not None
        return self._fleet

    def prepare(self, work: Work, folder: Path, url: str) -> None:
        """Start the fleet and let it do a little, so that every process has loaded what it needs."""
        slots = max(1, work.concurrency // 2)
        settings = {
            "executor_concurrency": slots,
            "judge_concurrency": slots,
            "checker_concurrency": 1,
            "window": 4 * slots,
            "sandbox": "bwrap",
            "log_level": "warning",
            "lease_seconds": 30,
            "heartbeat_seconds": 5,
            "sweep_seconds": 1,
            "overtaken_seconds": 5,
            "max_attempts": 5,
        }
        fleet = Fleet(folder, self._servers.postgres.create_database("peers"), self._servers.redis.url, **settings)
        fleet.environment |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "any"}
        migrate(fleet.parts.store.engine)
        self._fleet = fleet
        self._skill = write_skill(folder / "harbours", work)
        fleet.start(*ROLES)
        self._submit(write_skill(folder / "warm", Work(4, work.latency, 1), "Warm-up"))
        wait_until(self.is_done, 120, "the warm-up")

    def launch(self) -> None:
        before = time.process_time()
        self._submit(self._skill)
        # The submit runs in this process; as a service it would run in the API's, which belongs to Assay.
        self._used += time.process_time() - before

    def _submit(self, skill: Path) -> None:
        settings = {
            "runs_per_eval": 1,
            "baseline_comparison": False,
            "runner": "messages",
            "executor_model": EXECUTOR,
            "judge_model": JUDGE,
            "rejudge_share": 0.0,
            "analyst": False,
        }
        self._batch_id = self.fleet.parts.desk.submit(Submission(skill, settings=settings)).batch_id

    def is_done(self) -> bool:
        return self.fleet.parts.desk.status(self._batch_id, "default").is_ended

    def pids(self) -> list[int]:
        return [worker.pid for worker in self.fleet.workers] + self._servers.pids()

    def cpu_seconds(self) -> float:
        return self._used + cpu_seconds(self.pids())

    def kill(self) -> None:
        """Workers, broker and database in one stroke."""
        self._used += cpu_seconds(self.pids())
        kill(self.pids())
        self.fleet.workers.clear()
        self._servers.kill()
        self.fleet.parts.store.engine.dispose()

    def resume(self) -> None:
        if not self._servers.pids():
            self._servers.start()
        self.fleet.start(*ROLES)

    def saved(self) -> dict[str, int]:
        """Executions and settled runs that are in the database."""
        self._servers.start()
        mine = runs.c.batch_id == self._batch_id
        done = (attempts.c.run_id == runs.c.id, attempts.c.stage == "execute", attempts.c.result == "done")
        executed = select(func.count()).where(mine, *done)
        ended = select(func.count()).where(mine, runs.c.stage == "settled")
        with self.fleet.parts.store.engine.begin() as connection:
            return {
                "executions": int(connection.execute(executed).scalar_one()),
                "settled": int(connection.execute(ended).scalar_one()),
            }

    def result(self) -> dict[str, Any]:
        status = self.fleet.parts.desk.status(self._batch_id, "default")
        outcomes = {str(name): count for name, count in status.progress.outcomes.items()}
        with self.fleet.parts.store.engine.begin() as connection:
            last = connection.execute(select(func.max(runs.c.settled_at))).scalar_one()
        assert status.batch.finished_at is not None
        aggregate_seconds = round(status.batch.finished_at - last, 2)
        return {"scored": outcomes.get("scored", 0), "outcomes": outcomes, "aggregate_seconds": aggregate_seconds}

    def output(self) -> str:
        """The end of the workers' logs."""
        return self.fleet.logs()

    def remove(self) -> None:
        if self._fleet is not None:
            self._fleet.stop()
        self._servers.remove()


def write_skill(folder: Path, work: Work, word: str = "Case") -> Path:
    """A skill with one statement per case."""
    (folder / "evals").mkdir(parents=True)
    head = "---\nname: harbours\ndescription: Use when asked about harbours.\n---\n"
    (folder / "SKILL.md").write_text(f"{head}Every harbour is open.\n")
    evals = [
        {"id": n, "prompt": f"{word}: {prompt}", "expectations": [STATEMENT]}
        for n, prompt in enumerate(work.prompts(), 1)
    ]
    (folder / "evals" / "evals.json").write_text(json.dumps({"skill_name": "harbours", "evals": evals}))
    return folder
