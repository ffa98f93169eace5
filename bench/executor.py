"""How many model calls one executor process holds at once, next to a plain asyncio loop with the same SDK.

    python bench/executor.py [--concurrency 200] [--rounds 8] [--latency 1.0] [--repeats 3]

Starts a simulator of its own, then each way in a process of its own, one after the other. Share of the ideal =
calls per second / (concurrency / latency). CPU and memory are those of the measured process alone.
"""

import argparse
import asyncio
import itertools
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from results import save

PARAMS: dict[str, Any] = {"model": "simulated", "max_tokens": 200, "messages": [{"role": "user", "content": "hello"}]}
WAYS = {
    "loop": "plain asyncio loop, AsyncAnthropic as it comes, streaming",
    "loop_aiohttp": "plain asyncio loop, AsyncAnthropic with aiohttp, streaming",
    "threads": "threads, one synchronous Anthropic client, streaming",
    "stream": "Assay: threads on ModelClient.stream",
    "complete": "Assay: threads on ModelClient.complete (the judge's way)",
    "runner": "Assay: threads on MessagesRunner.run, one call a run",
}


def cpu_seconds() -> float:
    """What this process has used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def in_a_loop(url: str, concurrency: int, calls: int, with_aiohttp: bool) -> tuple[float, float]:
    """Calls from one loop: seconds and CPU seconds."""
    import anthropic
    import httpx2

    limits = httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    made = anthropic.DefaultAioHttpClient if with_aiohttp else anthropic.DefaultAsyncHttpxClient
    async with anthropic.AsyncAnthropic(
        base_url=url, api_key="k", http_client=made(limits=limits), open_telemetry=False
    ) as client:

        async def call() -> None:
            async with client.messages.stream(**PARAMS) as stream:
                await stream.get_final_message()

        await call()
        numbers = iter(range(calls))

        async def worker() -> None:
            for _ in numbers:
                await call()

        started, used = time.perf_counter(), cpu_seconds()
        await asyncio.gather(*(worker() for _ in range(concurrency)))
        return time.perf_counter() - started, cpu_seconds() - used


def in_threads(call: Callable[[], Any], concurrency: int, calls: int) -> tuple[float, float]:
    """Calls from many threads: seconds and CPU seconds."""
    call()
    numbers = itertools.count()

    def worker() -> None:
        while next(numbers) < calls:
            call()

    threads = [threading.Thread(target=worker) for _ in range(concurrency)]
    started, used = time.perf_counter(), cpu_seconds()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - started, cpu_seconds() - used


def synchronous(url: str, concurrency: int) -> Callable[[], Any]:
    """The SDK's synchronous client, shared."""
    import anthropic
    import httpx2

    limits = httpx2.Limits(max_connections=concurrency, max_keepalive_connections=concurrency)
    http = anthropic.DefaultHttpxClient(limits=limits)
    client = anthropic.Anthropic(base_url=url, api_key="k", http_client=http, open_telemetry=False)

    def call() -> None:
        with client.messages.stream(**PARAMS) as stream:
            stream.get_final_message()

    return call


def ours(url: str, concurrency: int, way: str) -> Callable[[], Any]:
    """Our client, or our runner on it."""
    from service.limits.port import Purpose
    from service.models import Call, ClientSettings, ModelClient

    client = ModelClient(ClientSettings("k", url, concurrency))
    if way == "runner":
        return runs(client)
    asked = Call(PARAMS, Purpose.EXECUTE)
    return lambda: getattr(client, way)(asked)


def runs(client: Any) -> Callable[[], Any]:
    """Whole runs of the messages runner, with a workspace each; the script answers without tools."""
    from service.runners.messages import MessagesRunner
    from service.runners.port import Assignment
    from service.sandbox.bubblewrap import Bubblewrap

    runner = MessagesRunner(client, Bubblewrap())
    root, numbers = Path(tempfile.mkdtemp()), itertools.count(1)

    def call() -> None:
        number = next(numbers)
        workspace = root / str(number) / "workspace"
        workspace.mkdir(parents=True)
        runner.run(Assignment(number, "b", 1, "without_skill", number, "hello", workspace, (), None, "simulated", 60.0))

    return call


def measure(way: str, url: str, concurrency: int, calls: int) -> dict[str, float]:
    """One way, in this process."""
    if way.startswith("loop"):
        seconds, used = asyncio.run(in_a_loop(url, concurrency, calls, way == "loop_aiohttp"))
    elif way == "threads":
        seconds, used = in_threads(synchronous(url, concurrency), concurrency, calls)
    else:
        seconds, used = in_threads(ours(url, concurrency, way), concurrency, calls)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"calls_per_second": calls / seconds, "cpu_ms": used / calls * 1000, "rss_mib": most}


def start_simulator(latency: float) -> tuple[subprocess.Popen[str], str]:
    """A simulator in a process of its own, and its address."""
    script = tempfile.NamedTemporaryFile("w", suffix=".json", delete=False)  # noqa: SIM115
    with script:
        json.dump({"agent": [{"turns": [{"text": "There is nothing to do."}]}]}, script)
    argv = [sys.executable, "-m", "simulator", "--port", "0", "--latency", str(latency), "--script", script.name]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def in_a_process(way: str, url: str, concurrency: int, rounds: int) -> dict[str, float]:
    """One way, in a process of its own."""
    argv = [sys.executable, __file__, "--way", way, "--url", url]
    argv += ["--concurrency", str(concurrency), "--rounds", str(rounds)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True)
    seen: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return seen


def main() -> None:
    """All ways in turn, the best of the repeats: on a shared machine the others' work only ever makes it slower."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--concurrency", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--latency", type=float, default=1.0)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--url")
    options = parser.parse_args()
    calls = options.concurrency * options.rounds
    if options.way:
        print(json.dumps(measure(options.way, options.url, options.concurrency, calls)))
        return
    simulator, url = start_simulator(options.latency)
    ideal = options.concurrency / options.latency
    print(f"{options.concurrency} concurrent, {calls} calls of {options.latency:g} s, ideal {ideal:g} calls/s\n")
    best: dict[str, dict[str, float]] = {}
    try:
        for way in list(WAYS) * options.repeats:
            seen = in_a_process(way, url, options.concurrency, options.rounds)
            if seen["calls_per_second"] > best.get(way, seen)["calls_per_second"] or way not in best:
                best[way] = seen
    finally:
        simulator.terminate()
        simulator.wait()
    print("| way | share of ideal | CPU ms/call | RSS MiB |\n|---|---|---|---|")
    for way, seen in best.items():
        share = seen["calls_per_second"] / ideal
        seen["share_of_ideal"] = round(share, 3)
        print(f"| {WAYS[way]} | {share:.2f} | {seen['cpu_ms']:.2f} | {seen['rss_mib']:.0f} |")
    asked = {"concurrency": options.concurrency, "latency": options.latency, "calls": calls}
    save("executor", {**asked, "ways": {WAYS[way]: seen for way, seen in best.items()}})


if __name__ == "__main__":
    main()
