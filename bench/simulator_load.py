"""Whether the simulator holds a thousand requests at once: what is measured in front of it must not be the simulator.

    python bench/simulator_load.py [--concurrency 1000] [--rounds 5] [--latency 1.0]

The client is plain aiohttp without any SDK: the least that can ask.
"""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import aiohttp
from results import save

BODY = json.dumps({"model": "simulated", "max_tokens": 100, "messages": [{"role": "user", "content": "hello"}]})
HEADERS = {"x-api-key": "k", "anthropic-version": "2023-06-01", "content-type": "application/json"}


async def load(url: str, concurrency: int, calls: int) -> tuple[float, dict[str, Any]]:
    """Seconds for all calls, and what the simulator counted."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        numbers = iter(range(calls))

        async def worker() -> None:
            for _ in numbers:
                async with session.post(f"{url}/v1/messages", data=BODY, headers=HEADERS) as answer:
                    await answer.read()
                    assert answer.status == 200

        started = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(concurrency)))
        seconds = time.perf_counter() - started
        async with session.get(f"{url}/stats") as answer:
            return seconds, await answer.json()


def used_by(pid: int) -> tuple[float, float]:
    """CPU seconds and most memory (MiB) of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    status = Path(f"/proc/{pid}/status").read_text()
    most = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return (int(fields[11]) + int(fields[12])) / 100, most / 1024


def main() -> None:
    """One measurement."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--concurrency", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--latency", type=float, default=1.0)
    options = parser.parse_args()
    argv = [sys.executable, "-m", "simulator", "--port", "0", "--latency", str(options.latency)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        calls = options.concurrency * options.rounds
        seconds, stats = asyncio.run(load(url, options.concurrency, calls))
        used, most = used_by(process.pid)
        process.terminate()
    told = f"{calls} calls in {seconds:.1f} s = {calls / seconds:.0f}/s, peak in flight {stats['peak_in_flight']}"
    print(f"{told}, simulator {used / calls * 1000:.2f} ms CPU/call, {most:.0f} MiB")
    figures = {"concurrency": options.concurrency, "latency": options.latency, "calls": calls, "seconds": seconds}
    figures |= {"calls_per_second": calls / seconds, "peak_in_flight": stats["peak_in_flight"]}
    save("simulator_load", {**figures, "cpu_ms_per_call": used / calls * 1000, "rss_mib": most})


if __name__ == "__main__":
    main()
