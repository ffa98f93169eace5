"""The whole way over HTTP with real servers: submit an archive, watch, lose the API meanwhile, fetch everything."""

import io
import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.fleet import Fleet
from support.servers import accepts, free_port

from cli.client import Client
from service.storage.schema import migrate
from simulator import start
from simulator.handle import Simulator

CASES, RUNS = 3, 2


@pytest.fixture(scope="module")
def simulator() -> Iterator[Simulator]:
    with start(latency_seconds=0.1) as running:
        yield running


@pytest.fixture
def fleet(tmp_path: Path, redis_url: str, postgres_url: str, simulator: Simulator) -> Iterator[Fleet]:
    made = Fleet(tmp_path, postgres_url, redis_url)
    made.environment |= {"ANTHROPIC_BASE_URL": simulator.url, "ANTHROPIC_API_KEY": "simulated"}
    migrate(made.parts.store.engine)
    yield made
    made.stop()


class Api:
    """`assay serve` as a process of its own."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        command = [sys.executable, "-m", "cli", "serve", "--port", str(self.port)]
        with (self._fleet.folder / "api.log").open("ab") as log:
            self.process = subprocess.Popen(command, env=self._fleet.environment, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while not accepts(self.port):
            assert self.process.poll() is None and time.monotonic() < deadline, self._fleet.logs()
            time.sleep(0.05)

    def stop(self, how: int) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(30)


@pytest.fixture
def api(fleet: Fleet) -> Iterator[Api]:
    made = Api(fleet)
    made.start()
    yield made
    made.stop(signal.SIGKILL)


def assay(fleet: Fleet, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cli", *words]
    return subprocess.run(command, env=fleet.environment, capture_output=True, text=True, timeout=120, cwd=fleet.folder)


def write_skill(folder: Path) -> Path:
    (folder / "evals" / "files").mkdir(parents=True)
    (folder / "SKILL.md").write_text("---\nname: notes\ndescription: writes notes\n---\nWrite notes.md.\n")
    (folder / "evals" / "files" / "input.txt").write_text("three lines\nof\ntext\n")
    evals = [
        {"id": n, "prompt": "Write notes.md", "files": ["input.txt"], "expectations": ["The notes name the input"]}
        for n in range(1, CASES + 1)
    ]
    (folder / "evals" / "evals.json").write_text(json.dumps({"skill_name": "notes", "evals": evals}))
    return folder


def test_a_batch_from_archive_to_report_over_http_with_a_restart_in_between(fleet: Fleet, api: Api) -> None:
    made = assay(fleet, "token", "create", "default", "--scope", "submit", "--scope", "read")
    assert made.returncode == 0, made.stderr
    token = made.stdout.strip()
    settings = {
        "runs_per_eval": RUNS,
        "runner": "messages",
        "executor_model": "simulated",
        "judge_model": "simulated-judge",
    }
    with Client(api.url, token) as client:
        skill = write_skill(fleet.folder / "notes")
        accepted = client.submit(skill, settings=settings, idempotency_key="story")
        batch = accepted["batch_id"]
        assert accepted["runs"] == CASES * RUNS * 2

        fleet.start()
        seen: list[tuple[str, dict]] = []
        for event in client.events(batch, 0):
            seen.append(event)
            if len([kind for kind, _ in seen if kind == "stage"]) == 5:
                api.stop(signal.SIGKILL)
                api.start()
        # The same submit again, after the restart, is the same batch.
        assert client.submit(skill, settings=settings, idempotency_key="story")["batch_id"] == batch

        finished = client.batch(batch)
        assert finished["state"] == "finished", fleet.logs()
        assert finished["progress"]["outcomes"] == {"scored": CASES * RUNS * 2}
        stages = [data["id"] for kind, data in seen if kind == "stage"]
        # Nothing is to be checked here: every run is executed and judged.
        assert len(stages) == len(set(stages)) >= CASES * RUNS * 2 * 2

        benchmark, feedback = client.benchmark(batch), client.feedback(batch)
        assert len(benchmark["runs"]) == CASES * RUNS * 2
        assert feedback["total_runs"] == CASES * RUNS * 2
        report, export = io.BytesIO(), io.BytesIO()
        client.save(batch, "report", report)
        client.save(batch, "export.zip", export)
        assert b"</html>" in report.getvalue()
        with zipfile.ZipFile(export) as archive:
            assert sum(name.endswith("/grading.json") for name in archive.namelist()) == CASES * RUNS * 2
        run = client.run(next(client.runs(batch))["id"])
        assert {step["stage"] for step in run["story"]} == {"execute", "judge"}
        assert client.artifact(run["id"], "transcript.md")

    fleet.environment |= {"ASSAY_SERVER": api.url, "ASSAY_TOKEN": token}
    status, watch = assay(fleet, "status", batch, "--json"), assay(fleet, "watch", batch)
    assert json.loads(status.stdout)["state"] == "finished"
    assert (watch.returncode, "scored" in watch.stdout) == (0, True)
    assert assay(fleet, "results", batch).stdout.startswith("# ")
    assert token not in fleet.logs()
    fleet.environment["ASSAY_TOKEN"] = "wrong"
    assert assay(fleet, "status").returncode == 3


def test_one_command_is_a_whole_installation(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "ASSAY_SANDBOX": "none"}
    port = free_port()
    words = ["serve", "--port", str(port), "--data", str(tmp_path / "data"), "--model", "simulated"]
    with (tmp_path / "serve.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "cli", *words], env=environment, stdout=log, stderr=log)
    try:
        while not accepts(port):
            assert process.poll() is None, (tmp_path / "serve.log").read_text()
            time.sleep(0.05)
        with Client(f"http://127.0.0.1:{port}") as client:
            models = {"executor_model": "simulated", "judge_model": "simulated-judge", "runs_per_eval": 1}
            batch = client.submit(write_skill(tmp_path / "notes"), settings=models)["batch_id"]
            last = list(client.watch(batch))[-1]
        assert (last["state"], last["outcomes"]) == ("finished", {"scored": CASES * 2})
        # The same data folder answers without the server, too.
        command = [sys.executable, "-m", "cli", "status", batch, "--data", str(tmp_path / "data")]
        told = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert "finished" in told.stdout, told.stderr
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_without_a_token_nobody_listens_to_other_machines(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    command = [sys.executable, "-m", "cli", "serve", "--host", "0.0.0.0", "--port", "0", "--data", str(tmp_path)]

    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)

    assert (done.returncode, "make one with `assay token create`" in done.stderr) == (3, True)
