"""Checks per second of a real prefork checker worker with one and with two processes, over Redis and PostgreSQL.

    python bench/checker_pool.py [--runs 400]

Runs are put at the stage `check` with one output each; the time between the first and the last settled run counts.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.fleet import Fleet, write_skill
from support.servers import PostgresServer, RedisServer

from schemas.states import Stage
from service.admission import choose
from service.storage.schema import migrate
from service.submitting import Submission


def prepare(fleet: Fleet, folder: Path, runs: int) -> str:
    """Executed runs whose check is due, their messages sent."""
    migrate(fleet.parts.store.engine)
    skill = write_skill(folder / "skill", 20)
    settings = {"command": "true", "runs_per_eval": runs // 40}
    batch_id = fleet.parts.desk.submit(Submission(skill, settings=settings)).batch_id
    answer = fleet.parts.artifacts.put(b"done\n")
    messages = []
    for message in fleet.parts.store.dispatch.admit(runs, choose):
        claim = fleet.parts.store.runs.claim(int(message.id), Stage.EXECUTE, "bench", 600)
        assert claim is not None
        saved = fleet.parts.store.runs.advance(claim, Stage.CHECK, {"outputs/answer.txt": answer}, {})
        assert saved is not None and saved.message is not None
        messages.append(saved.message)
    fleet.parts.broker.send(messages)
    return batch_id


def measure(processes: int, runs: int, redis: RedisServer, postgres: PostgresServer) -> float:
    """Checks per second."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        url = postgres.create_database(f"pool{processes}")
        own = {"checker_concurrency": processes, "window": runs, "log_level": "warning"}
        fleet = Fleet(folder, url, redis.url, **own)
        try:
            batch_id = prepare(fleet, folder, runs)
            fleet.start("checker")
            fleet.wait_for_settled(batch_id, 20)
            first, began = fleet.parts.store.batches.progress(batch_id).settled, time.perf_counter()
            fleet.wait_for_settled(batch_id, runs)
            return (runs - first) / (time.perf_counter() - began)
        finally:
            fleet.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=400)
    runs = parser.parse_args().runs
    redis, postgres = RedisServer(), PostgresServer()
    redis.start()
    postgres.start()
    try:
        for processes in (1, 2):
            print(f"prefork {processes}: {measure(processes, runs, redis, postgres):.0f} runs checked per second")
    finally:
        redis.remove()
        postgres.remove()


if __name__ == "__main__":
    main()
