"""What the pipeline itself costs: submitting a very large batch, and moving runs through stages that do nothing.

    python bench/pipeline.py submit [--runs 100000]
    python bench/pipeline.py stages [--runs 2000]        stages in process, no broker: SQLite and PostgreSQL
    python bench/pipeline.py fleet  [--runs 500]         real workers, a command that does nothing, Redis and PostgreSQL
    python bench/pipeline.py large  [--runs 100000]      memory and broker while a very large batch is under way
    python bench/pipeline.py profile [--runs 1000]       where the time of the stages goes

Private servers are started on free ports and stopped at the end.
"""

import argparse
import cProfile
import json
import pstats
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import psutil
from results import save
from support.fleet import Fleet, write_skill
from support.servers import PostgresServer, RedisServer

from schemas.states import Outcome, Stage
from service import log
from service.bootstrap import Parts
from service.settings import Settings
from service.stages import End, settled
from service.storage.rows import Message
from service.storage.schema import migrate
from service.submitting import Submission


class Collected:
    """Stands where the broker is: keeps the messages for the bench to work on."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.lock = threading.Lock()

    def send(self, messages: list[Message]) -> None:
        with self.lock:
            self.messages += messages

    def refill(self) -> None:
        return

    def take(self) -> Message | None:
        with self.lock:
            return self.messages.pop(0) if self.messages else None


@contextmanager
def database(kind: str) -> Iterator[str]:
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield f"sqlite:///{folder}/assay.db"
        return
    server = PostgresServer()
    server.start()
    try:
        yield server.create_database("bench")
    finally:
        server.remove()


def parts_on(url: str, folder: Path, window: int) -> tuple[Parts, Collected]:
    parts = Parts(Settings(data=folder, database_url=url, window=window, sandbox="none"), is_worker=True)
    migrate(parts.store.engine)
    broker = Collected()
    parts._built["broker"] = broker
    return parts, broker


def submit_batch(parts: Parts, folder: Path, runs: int) -> str:
    """A batch of about so many runs: 100 cases, two arms."""
    cases = min(100, max(1, runs // 2))
    skill = write_skill(folder / f"skill{cases}", cases)
    rounds = max(1, runs // (2 * cases))
    return parts.desk.submit(Submission(skill, settings={"command": "true", "runs_per_eval": rounds})).batch_id


def megabytes() -> float:
    return psutil.Process().memory_info().rss / 2**20


def bench_submit(runs: int) -> None:
    rows: list[dict[str, object]] = []
    for kind in ("sqlite", "postgresql"):
        with database(kind) as url, tempfile.TemporaryDirectory() as folder:
            parts, broker = parts_on(url, Path(folder), 256)
            before = megabytes()
            started = time.perf_counter()
            batch_id = submit_batch(parts, Path(folder), runs)
            seconds = time.perf_counter() - started
            started = time.perf_counter()
            parts.recovery.refill()
            refill = time.perf_counter() - started
            started = time.perf_counter()
            parts.desk.cancel(batch_id, "default")
            cancel = time.perf_counter() - started
            print(
                f"submit  {kind:10} {runs:,} runs accepted in {seconds:.2f} s, memory +{megabytes() - before:.0f} MB; "
                f"first admission {refill * 1000:.0f} ms for {len(broker.messages)} messages; cancel {cancel:.2f} s"
            )
            rows.append({"database": kind, "runs": runs, "accepted_seconds": round(seconds, 2)})
            rows[-1] |= {"first_admission_ms": round(refill * 1000, 1), "cancel_seconds": round(cancel, 2)}
            parts.close()
    save("pipeline_submit", {"rows": rows})


def to_check(_job: object, _held: object) -> End:
    return End(Stage.CHECK)


def to_judge(_job: object, _held: object) -> End:
    return End(Stage.JUDGE)


def to_end(_job: object, _held: object) -> End:
    return settled(Outcome.SCORED)


ACTS = {"execute": to_check, "check": to_judge, "judge": to_end}


def drain(parts: Parts, broker: Collected) -> None:
    """Work like one worker thread until nothing is left."""
    idle = 0
    while idle < 50:
        message = broker.take()
        if message is None:
            idle += 1
            time.sleep(0.002)
        elif message.stage in ACTS:
            idle = 0
            parts.stages.work(int(message.id), Stage(message.stage), ACTS[message.stage])


def bench_stages(runs: int) -> None:
    rows: list[dict[str, object]] = []
    for kind in ("sqlite", "postgresql"):
        for threads in (1, 8):
            with database(kind) as url, tempfile.TemporaryDirectory() as folder:
                parts, broker = parts_on(url, Path(folder), 256)
                batch_id = submit_batch(parts, Path(folder), runs)
                parts.recovery.refill()
                cpu = time.process_time()
                started = time.perf_counter()
                with ThreadPoolExecutor(threads) as pool:
                    for _ in range(threads):
                        pool.submit(drain, parts, broker)
                seconds = time.perf_counter() - started
                cpu = time.process_time() - cpu
                done = parts.store.batches.progress(batch_id).settled
                print(
                    f"stages  {kind:10} {threads} threads: {done / seconds:.0f} runs/s of three stages, "
                    f"{cpu / done * 1000:.2f} ms CPU per run in the worker"
                )
                rows.append({"database": kind, "threads": threads, "runs_per_second": round(done / seconds, 1)})
                rows[-1]["cpu_ms_per_run"] = round(cpu / done * 1000, 2)
                parts.close()
    save("pipeline_stages", {"runs": runs, "rows": rows})


def bench_fleet(runs: int) -> None:
    redis, postgres = RedisServer(), PostgresServer()
    redis.start()
    postgres.start()
    try:
        for executors in (1, 2):
            with tempfile.TemporaryDirectory() as folder:
                _fleet_once(Path(folder), redis, postgres, executors, runs)
    finally:
        redis.remove()
        postgres.remove()


def _fleet_once(folder: Path, redis: RedisServer, postgres: PostgresServer, executors: int, runs: int) -> None:
    url = postgres.create_database(f"fleet{executors}")
    fleet = Fleet(folder, url, redis.url, log_level="warning", sandbox="bwrap")
    migrate(fleet.parts.store.engine)
    try:
        fleet.start(*["executor"] * executors, "checker", "judge", "aggregator")
        fleet.parts.desk.submit(Submission(write_skill(folder / "warm", 1), settings={"command": "true"}))
        time.sleep(8)
        before = fleet_cpu(fleet, redis, postgres)
        started = time.perf_counter()
        batch_id = submit_batch(fleet.parts, folder, runs)
        fleet.wait(batch_id, 900)
        seconds = time.perf_counter() - started
        used = fleet_cpu(fleet, redis, postgres) - before
        print(
            f"fleet   no-op command, {executors} executor processes x 8: {runs / seconds:.1f} runs/s, "
            f"{used / runs * 1000:.1f} ms CPU per run over all processes (broker and database included)"
        )
    finally:
        fleet.stop()


def fleet_cpu(fleet: Fleet, redis: RedisServer, postgres: PostgresServer) -> float:
    """CPU seconds of everything that belongs to the fleet, ended children included."""
    total = 0.0
    roots = [worker.pid for worker in fleet.workers] + [
        server.process.pid for server in (redis, postgres) if server.process
    ]
    for pid in roots:
        for process in [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]:
            try:
                times = process.cpu_times()
                total += times.user + times.system + times.children_user + times.children_system
            except psutil.NoSuchProcess:
                continue
    return total


def bench_large(runs: int) -> None:
    """Memory of every process and depth of the broker while a very large batch is under way."""
    redis, postgres = RedisServer(), PostgresServer()
    redis.start()
    postgres.start()
    with tempfile.TemporaryDirectory() as folder:
        fleet = Fleet(Path(folder), postgres.create_database("large"), redis.url, log_level="warning", sandbox="bwrap")
        migrate(fleet.parts.store.engine)
        try:
            fleet.start()
            batch_id = submit_batch(fleet.parts, Path(folder), runs)
            for second in range(0, 61, 15):
                time.sleep(15 if second else 8)
                _print_memory(fleet, redis, batch_id, second)
            fleet.parts.desk.cancel(batch_id, "default")
        finally:
            fleet.stop()
            redis.remove()
            postgres.remove()


def _print_memory(fleet: Fleet, redis: RedisServer, batch_id: str, second: int) -> None:
    queues = ("execute", "check", "judge")
    depth = sum(fleet.parts.broker.depth(queue) or 0 for queue in queues)
    rss: dict[str, float] = {}
    for process in fleet.worker_processes():
        words = process.cmdline()
        role = words[words.index("workers.process") + 1]
        rss[role] = rss.get(role, 0.0) + process.memory_info().rss / 2**20
    assert redis.process is not None
    rss["redis"] = psutil.Process(redis.process.pid).memory_info().rss / 2**20
    settled_runs = fleet.parts.store.batches.progress(batch_id).settled
    words = ", ".join(f"{role} {size:.0f}" for role, size in sorted(rss.items()))
    print(
        f"large   after {second:2} s: {settled_runs} settled, {depth} messages in the broker; MB: {words}", flush=True
    )


def bench_profile(runs: int) -> None:
    with database("postgresql") as url, tempfile.TemporaryDirectory() as folder:
        parts, broker = parts_on(url, Path(folder), 256)
        submit_batch(parts, Path(folder), runs)
        parts.recovery.refill()
        profile = cProfile.Profile()
        profile.enable()
        drain(parts, broker)
        profile.disable()
        pstats.Stats(profile).sort_stats("tottime").print_stats(18)
        parts.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["submit", "stages", "fleet", "large", "profile"])
    parser.add_argument("--runs", type=int)
    given = parser.parse_args()
    log.configure("error", "text")
    default = {"submit": 100_000, "stages": 2_000, "fleet": 500, "large": 100_000, "profile": 1_000}[given.what]
    benches = {
        "submit": bench_submit,
        "stages": bench_stages,
        "fleet": bench_fleet,
        "large": bench_large,
        "profile": bench_profile,
    }
    benches[given.what](given.runs or default)
    print(json.dumps({"peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)}))


if __name__ == "__main__":
    main()
