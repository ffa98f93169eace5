"""How the API holds up: submitters and watchers at once, on PostgreSQL; python bench/api_load.py [SECONDS].

The API runs as a process of its own (`assay serve` with a broker, so that it runs no workers): its memory is its own.
Nothing executes the batches; ten of them are paused and resumed all the time, so that their watchers have news.
"""

import asyncio
import io
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from typing import Any

import httpx2
import psutil

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from results import save
from support.servers import PostgresServer, RedisServer, accepts, free_port

SUBMITTERS, WATCHERS, WATCHED = 50, 200, 10
PAUSE_SECONDS = 1.0  # a submitter waits between two submits, as a person or a CI job would
OPTIONS = json.dumps({"settings": {"runner": "command", "command": "true", "runs_per_eval": 3}})


def archive() -> bytes:
    """A skill with 10 cases."""
    expectation = {"id": "S1", "type": "file_exists", "description": "a", "pattern": "a.txt", "critical": True}
    evals = [{"id": n, "prompt": f"case {n}", "structural_expectations": [expectation]} for n in range(10)]
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as out:
        out.writestr("SKILL.md", "---\nname: load\ndescription: d\n---\nx\n")
        out.writestr("evals/evals.json", json.dumps({"skill_name": "load", "evals": evals}))
    return buffer.getvalue()


class Load:
    """Clients that count what they see."""

    def __init__(self, url: str, seconds: float, token: str) -> None:
        self.client = httpx2.AsyncClient(
            base_url=url,
            headers={"Authorization": f"Bearer {token}"},
            timeout=60,
            limits=httpx2.Limits(max_connections=400, max_keepalive_connections=400),
        )
        self.until = time.monotonic() + seconds
        self.submits: list[float] = []
        self.events = 0
        self.early_ends = 0
        self.errors: list[str] = []
        self.batches: list[str] = []
        self.toggled: dict[tuple[str, str], float] = {}
        self.delays: list[float] = []

    async def submit(self, data: bytes) -> None:
        """Submit again and again."""
        while time.monotonic() < self.until:
            began = time.monotonic()
            answer = await self.client.post(
                "/v1/batches", files={"skill": ("load.zip", data)}, data={"options": OPTIONS}
            )
            self.submits.append(time.monotonic() - began)
            if answer.status_code == 202:
                self.batches.append(answer.json()["batch_id"])
            else:
                self.errors.append(f"submit {answer.status_code}: {answer.text[:200]}")
            await asyncio.sleep(PAUSE_SECONDS)

    async def watch(self, batch_id: str) -> None:
        """Follow one batch."""
        try:
            async with asyncio.timeout(max(0.0, self.until - time.monotonic())):
                async with self.client.stream("GET", f"/v1/batches/{batch_id}/events") as answer:
                    if answer.status_code != 200:
                        self.errors.append(f"watch {answer.status_code}")
                        return
                    async for line in answer.aiter_lines():
                        self.hear(line)
        except TimeoutError:
            return  # the end of the bench; until then no stream may end, as no batch does
        self.early_ends += 1
        self.errors.append("a stream ended early")

    async def toggle(self, batch_id: str) -> None:
        """Pause and resume one batch, and remember when."""
        while time.monotonic() < self.until:
            for what, state in (("pause", "paused"), ("resume", "running")):
                self.toggled[batch_id, state] = time.monotonic()
                answer = await self.client.post(f"/v1/batches/{batch_id}/{what}")
                if answer.status_code != 200:
                    self.errors.append(f"{what} {answer.status_code}: {answer.text[:100]}")
                await asyncio.sleep(2.0)

    def hear(self, line: str) -> None:
        """One line of a stream: an event, and how late it is."""
        if line.startswith("data:"):
            self.events += 1
            data = json.loads(line[5:])
            if (since := self.toggled.get((data["batch_id"], data["state"]))) is not None:
                self.delays.append(time.monotonic() - since)

    async def look(self) -> list[float]:
        """Ask for a batch's state ten times a second, as somebody with a browser would."""
        seconds: list[float] = []
        while time.monotonic() < self.until:
            began = time.monotonic()
            answer = await self.client.get(f"/v1/batches/{self.batches[0]}")
            seconds.append(time.monotonic() - began)
            if answer.status_code != 200:
                self.errors.append(f"look {answer.status_code}")
            await asyncio.sleep(0.1)
        return seconds


async def run(url: str, seconds: float, api: psutil.Process, token: str) -> dict[str, Any]:
    """All of them at once; prints what was seen and gives it."""
    load = Load(url, seconds, token)
    data = archive()
    before = api.memory_info().rss
    first = [asyncio.create_task(load.submit(data)) for _ in range(SUBMITTERS)]
    while len(load.batches) < WATCHED:
        await asyncio.sleep(0.05)
    watchers = [asyncio.create_task(load.watch(load.batches[n % WATCHED])) for n in range(WATCHERS)]
    watchers += [asyncio.create_task(load.toggle(batch)) for batch in load.batches[:WATCHED]]
    looks = asyncio.create_task(load.look())
    peak = before
    while time.monotonic() < load.until:
        peak = max(peak, api.memory_info().rss)
        threads = api.num_threads()
        await asyncio.sleep(0.5)
    found = await asyncio.gather(*first, *watchers, looks, return_exceptions=True)
    load.errors += [repr(one) for one in found if isinstance(one, BaseException)]
    waits = {"submit": load.submits, "look at a batch": looks.result(), "hear of a change": load.delays}
    told = {what: tell(what, waited) for what, waited in waits.items()}
    print(f"submitted {len(load.batches)} batches, {WATCHERS} watchers saw {load.events} events")
    print(f"memory of the API: {before >> 20} MiB before, {peak >> 20} MiB at most; {threads} threads")
    print(f"streams that ended early: {load.early_ends}")
    print(f"errors: {len(load.errors)} {sorted(set(load.errors))[:3]}")
    await load.client.aclose()
    figures = {"seconds": seconds, "submitters": SUBMITTERS, "watchers": WATCHERS, "batches": len(load.batches)}
    memory = {"memory_mib_before": before >> 20, "memory_mib_at_most": peak >> 20, "threads": threads}
    wrong = {"early_ends": load.early_ends, "errors": len(load.errors)}
    return {**figures, "events": load.events, **memory, **wrong, "milliseconds": told}


def tell(what: str, seconds: list[float]) -> dict[str, float]:
    """p50 and p95."""
    cuts = statistics.quantiles(seconds, n=20)
    print(f"{what}: n={len(seconds)} p50 {cuts[9] * 1000:.0f} ms, p95 {cuts[18] * 1000:.0f} ms")
    return {"n": len(seconds), "p50": round(cuts[9] * 1000, 1), "p95": round(cuts[18] * 1000, 1)}


def main() -> None:
    """Start the servers and the API, load them, stop them."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    postgres, redis = PostgresServer(), RedisServer()
    postgres.start()
    redis.start()
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            "PATH": os.environ["PATH"],
            "ASSAY_COMMANDS": '["true"]',
            "HOME": folder,
            "ASSAY_DATA": folder,
            "ASSAY_DATABASE_URL": postgres.create_database("load"),
            "ASSAY_BROKER_URL": redis.url,
            "ASSAY_REQUESTS_PER_MINUTE": "1000000",
            "ASSAY_LOG_LEVEL": "warning",
        }
        subprocess.run([sys.executable, "-m", "cli", "migrate"], env=environment, check=True)
        scopes = ["--scope", "submit", "--scope", "read"]
        command = [sys.executable, "-m", "cli", "token", "create", "load", *scopes]
        made = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
        token = made.stdout.strip()
        port = free_port()
        process = subprocess.Popen([sys.executable, "-m", "cli", "serve", "--port", str(port)], env=environment)
        try:
            while not accepts(port):
                time.sleep(0.1)
            found = asyncio.run(run(f"http://127.0.0.1:{port}", seconds, psutil.Process(process.pid), token))
            save("api", found)
        finally:
            process.terminate()
            process.wait(20)
            postgres.remove()
            redis.remove()
    if found["errors"]:
        sys.exit(1)


if __name__ == "__main__":
    main()
