"""Whatever is killed, emptied or restarted: every run settles once, and no finished execution is paid for again."""

import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fleet import Fleet
from support.servers import PostgresServer, RedisServer

RUNS = 300
CASES, ROUNDS = 30, 5


@pytest.fixture
def redis() -> Iterator[RedisServer]:
    server = RedisServer()
    server.start()
    yield server
    server.remove()


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    server = PostgresServer()
    server.start()
    yield server
    server.remove()


@pytest.fixture
def fleet(tmp_path: Path, redis: RedisServer, postgres: PostgresServer) -> Iterator[Fleet]:
    made = Fleet(tmp_path, postgres.create_database("assay"), redis.url)
    yield made
    made.stop()


def wait_for_work(fleet: Fleet, batch_id: str, least: int = 3) -> int:
    """Until runs are in flight, so that a fault hits something; gives their number."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if (held := fleet.in_flight(batch_id)) >= least:
            return held
        time.sleep(0.02)
    raise AssertionError(f"no work in flight\n{fleet.logs()}")


def test_workers_killed_every_second(fleet: Fleet) -> None:
    chance = random.Random(7)
    batch_id = fleet.submit(CASES, ROUNDS, seconds=0.2)
    fleet.start()
    killed_at_work = 0

    for _ in range(6):
        killed_at_work += wait_for_work(fleet, batch_id)
        victims = fleet.worker_processes()
        for process in chance.sample(victims, k=(2 * len(victims) + 2) // 3):
            process.kill()
        time.sleep(1)

    fleet.wait(batch_id)
    assert killed_at_work >= 6
    assert sum(step["result"] == "lost" for step in _steps(fleet, batch_id)) >= 1
    fleet.assert_nothing_lost_and_nothing_twice(batch_id, RUNS)


def test_redis_restarted_empty(fleet: Fleet, redis: RedisServer) -> None:
    batch_id = fleet.submit(CASES, ROUNDS, seconds=0.2)
    fleet.start()
    lost = 0

    for _ in range(3):
        wait_for_work(fleet, batch_id)
        lost += fleet.parts.broker.depth("execute") or 0
        redis.stop()
        time.sleep(0.3)
        redis.start()
        time.sleep(2)

    fleet.wait(batch_id)
    assert lost > 0, "no message was in the queue when Redis was emptied"
    fleet.assert_nothing_lost_and_nothing_twice(batch_id, RUNS)


def test_postgres_restarted(fleet: Fleet, postgres: PostgresServer) -> None:
    batch_id = fleet.submit(CASES, ROUNDS, seconds=0.2)
    fleet.start()
    hit = 0

    for how in (signal.SIGQUIT, signal.SIGINT, signal.SIGQUIT):
        hit += wait_for_work(fleet, batch_id)
        postgres.stop(how)
        time.sleep(0.5)
        postgres.start()
        time.sleep(1)

    fleet.wait(batch_id)
    assert hit >= 3
    fleet.assert_nothing_lost_and_nothing_twice(batch_id, RUNS)


def test_every_message_delivered_twice(fleet: Fleet) -> None:
    fleet.environment["PYTHONPATH"] = str(Path(__file__).parents[1] / "support" / "twice")
    batch_id = fleet.submit(CASES, ROUNDS, seconds=0.05)
    fleet.start()

    fleet.wait(batch_id)
    refused = sum(log.count("nothing to do") for log in [path.read_text() for path in fleet.folder.glob("*.log")])
    assert refused >= RUNS, f"only {refused} repeated messages were seen and refused"
    fleet.assert_nothing_lost_and_nothing_twice(batch_id, RUNS)


def test_the_whole_fleet_killed_and_started_again(fleet: Fleet) -> None:
    batch_id = fleet.submit(CASES, ROUNDS, seconds=0.2)
    hit = 0

    for _ in range(3):
        fleet.start()
        hit += wait_for_work(fleet, batch_id)
        time.sleep(1.0)
        fleet.kill_all()
    fleet.start()

    fleet.wait(batch_id)
    assert hit >= 3
    fleet.assert_nothing_lost_and_nothing_twice(batch_id, RUNS)


def _steps(fleet: Fleet, batch_id: str) -> Iterator[dict[str, object]]:
    for run in fleet.parts.desk.runs(batch_id, "default"):
        yield from fleet.parts.store.runs.story(run.id)
