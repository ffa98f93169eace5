"""Two judge processes on one limiter: is the rate kept, is it shared fairly, does anybody see a 429?

    python bench/limiter.py [--per-minute 6000] [--seconds 20] [--threads 40]

A private Redis, and a simulator that refuses above the same rate with 429. Each process has threads of two teams, one
with three times as many as the other. 6000 a minute is 600 a minute with the clock running ten times as fast.
"""

import argparse
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from typing import Any

from results import save


def measure(redis_url: str, model_url: str, per_minute: int, seconds: float, threads: int) -> dict[str, Any]:
    """Calls from this process until the time is over: by team, and what they cost."""
    from redis import Redis

    from service.limits.gate import Gate
    from service.limits.hook import LimitsHook
    from service.limits.memory_budgets import MemoryBudgets
    from service.limits.port import Policy, Purpose, Rate, RetryLater
    from service.limits.shared import RedisLimiter
    from service.models import Call, ClientSettings, ModelClient

    limiter = RedisLimiter(Redis.from_url(redis_url), Policy(default_rate=Rate(requests=per_minute)))
    hook = LimitsHook(Gate(limiter), MemoryBudgets(), lambda _: (), lambda *_: 0.0)
    client = ModelClient(ClientSettings("k", model_url, threads), [hook])
    body = {"model": "simulated", "max_tokens": 20, "messages": [{"role": "user", "content": "hello"}]}
    done: Counter[str] = Counter()
    client.complete(Call(body, Purpose.JUDGE))  # the SDK is imported with the first call
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.monotonic()

    def worker(team: str) -> None:
        while time.monotonic() < start + seconds:
            try:
                client.complete(Call(body, Purpose.JUDGE, team=team))
            except RetryLater as later:
                time.sleep(min(later.seconds, 1.0))
                continue
            # The first fifth fills the queue; it is not counted.
            if start + seconds * 0.2 <= time.monotonic() < start + seconds:
                done[team] += 1

    names = ["many"] * (threads * 3 // 4) + ["few"] * (threads // 4)
    workers = [threading.Thread(target=worker, args=(name,)) for name in names]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    client.close()
    return dict(done)


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main() -> None:
    """One measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--per-minute", type=int, default=6_000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--threads", type=int, default=40)
    parser.add_argument("--redis", help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.redis:
        seen = measure(options.redis, options.model, options.per_minute, options.seconds, options.threads)
        print(json.dumps(seen))
        return
    folder, port = tempfile.mkdtemp(), free_port()
    program = shutil.which("redis-server") or sys.exit("redis-server is not on PATH; install it")
    command = [program, "--port", str(port), "--save", "", "--bind", "127.0.0.1"]
    redis = subprocess.Popen(command, stdout=subprocess.DEVNULL, cwd=folder)
    limit = ["--requests-per-minute", str(options.per_minute)]
    argv = [sys.executable, "-m", "simulator", "--port", "0", "--latency", "0.05", *limit]
    simulator = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert simulator.stdout is not None
    url = simulator.stdout.readline().strip()
    try:
        report(run(f"redis://127.0.0.1:{port}/0", url, options), url, options)
    finally:
        for process in (simulator, redis):
            process.terminate()
            process.wait()


def run(redis_url: str, model_url: str, options: argparse.Namespace) -> list[dict[str, int]]:
    """Two processes that start at the same moment."""
    argv = [sys.executable, __file__, "--redis", redis_url, "--model", model_url]
    argv += ["--per-minute", str(options.per_minute), "--seconds", str(options.seconds)]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    workers = [subprocess.Popen([*argv, "--threads", str(options.threads)], **pipes) for _ in range(2)]
    for worker in workers:
        assert worker.stdout is not None
        worker.stdout.readline()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    return [json.loads(worker.communicate()[0].splitlines()[-1]) for worker in workers]


def report(seen: list[dict[str, int]], url: str, options: argparse.Namespace) -> None:
    """Rates per minute, by team and by process, and what the simulator refused."""
    counted = options.seconds * 0.8
    teams = {team: sum(one.get(team, 0) for one in seen) * 60 / counted for team in ("many", "few")}
    total = sum(teams.values())
    with urllib.request.urlopen(f"{url}/stats") as answer:
        refused = json.load(answer)["by_status"].get("429", 0)
    print(f"limit {options.per_minute}/min, two processes, {options.threads} threads each, {options.seconds:g} s")
    print(f"total {total:.0f}/min = {total / options.per_minute:.3f} of the limit; 429: {refused}")
    ratio = teams["many"] / max(1, teams["few"])
    print(f"teams: many {teams['many']:.0f}/min, few {teams['few']:.0f}/min, ratio {ratio:.2f}")
    print(f"processes: {' and '.join(str(sum(one.values())) for one in seen)} calls counted")
    figures = {"per_minute": options.per_minute, "seconds": options.seconds, "threads_each": options.threads}
    figures |= {"total_per_minute": round(total, 1), "share_of_limit": round(total / options.per_minute, 3)}
    save("limiter", {**figures, "teams_per_minute": teams, "refused_by_the_provider": refused})


if __name__ == "__main__":
    main()
