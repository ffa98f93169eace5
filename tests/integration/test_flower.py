"""Flower for real: it starts with our settings, asks for a password, and shows every role's work in readable words."""

import base64
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.fleet import Fleet, write_skill
from support.rabbitmq import RabbitServer
from support.servers import free_port

from simulator import Simulator
from simulator import start as start_simulator

AUTH = "watcher:s3cret-for-tests"
ASSAY = [sys.executable, "-m", "cli"]


@pytest.fixture(params=["redis", "rabbitmq"])
def broker_url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "redis":
        yield request.getfixturevalue("redis_url")
        return
    server = RabbitServer()
    try:
        server.start()
        yield server.url
    finally:
        server.remove()


class Flower:
    """What a person with the password sees."""

    def __init__(self, port: int, process: subprocess.Popen[bytes]) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.process = process

    def get(self, path: str, auth: str | None = AUTH, data: bytes | None = None) -> tuple[int, bytes]:
        request = urllib.request.Request(f"{self.url}{path}", data=data)
        if auth:
            request.add_header("Authorization", f"Basic {base64.b64encode(auth.encode()).decode()}")
        try:
            with urllib.request.urlopen(request, timeout=10) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def tasks(self) -> list[dict[str, Any]]:
        status, body = self.get("/api/tasks")
        assert status == 200, body
        return list(json.loads(body).values())

    def is_up(self) -> bool:
        try:
            return self.get("/healthcheck", auth=None)[0] == 200
        except OSError:
            return False


@contextmanager
def running_flower(folder: Path, environment: dict[str, str]) -> Iterator[Flower]:
    port = free_port()
    given = {**environment, "ASSAY_FLOWER_AUTH": AUTH}
    with (folder / "flower.log").open("ab") as log:
        command = [*ASSAY, "flower", "--port", str(port)]
        process = subprocess.Popen(command, env=given, stdout=log, stderr=log, cwd=folder)
    flower = Flower(port, process)
    try:
        wait_until(flower.is_up, lambda: (folder / "flower.log").read_text())
        yield flower
    finally:
        process.terminate()
        process.wait(20)


def wait_until(true: Any, story: Any) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, story()
        time.sleep(0.1)


def ask_the_judge(skill: Path) -> None:
    """Let every case of the skill have a statement besides its structural expectation."""
    path = skill / "evals" / "evals.json"
    suite = json.loads(path.read_text())
    evals = [{**case, "expectations": ["The answer is written down"]} for case in suite["evals"]]
    path.write_text(json.dumps({**suite, "evals": evals}))


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with start_simulator() as running:
        yield running


def test_flower_shows_every_roles_tasks_with_readable_names_and_arguments(
    tmp_path: Path, broker_url: str, simulator: Simulator
) -> None:
    fleet = Fleet(tmp_path, None, broker_url, judge_model="simulated", rejudge_share=0, analyst="false")
    fleet.environment |= {"ANTHROPIC_BASE_URL": simulator.url, "ANTHROPIC_API_KEY": "simulated"}
    for runs in (1, 2):
        ask_the_judge(write_skill(tmp_path / f"skill-1-{runs}", cases=1))
    expected = {"assay.execute": 4, "assay.check": 4, "assay.judge": 4, "assay.aggregate": 1}

    def of_batch() -> list[dict[str, Any]]:
        return [task for task in flower.tasks() if f"batch={batch_id}" in (task["kwargs"] or "")]

    def is_watched() -> bool:
        fleet.wait(fleet.submit(cases=1, runs=1, seconds=0), seconds=60)
        return {task["name"] for task in flower.tasks()} >= set(expected)

    def seen() -> dict[str, int]:
        done = {task["uuid"]: task["name"] for task in of_batch() if task["state"] == "SUCCESS"}
        return {name: list(done.values()).count(name) for name in expected}

    with running_flower(tmp_path, fleet.environment) as flower:
        try:
            fleet.start()
            # Workers say nothing until somebody watches: Flower tells new ones so every few seconds.
            wait_until(is_watched, lambda: f"{flower.tasks()}\n{fleet.logs()}")
            batch_id = fleet.submit(cases=1, runs=2, seconds=0)
            fleet.wait(batch_id, seconds=60)
            wait_until(lambda: seen() == expected, lambda: f"{flower.tasks()}\n{fleet.logs()}")
        finally:
            fleet.stop()
        tasks = of_batch()

    arms = [("with_skill", 1), ("with_skill", 2), ("without_skill", 1), ("without_skill", 2)]
    for name in ("assay.execute", "assay.check", "assay.judge"):
        words = sorted(task["kwargs"] for task in tasks if task["name"] == name)
        assert words == [f"batch={batch_id} case=1 configuration={arm} run={number}" for arm, number in arms]
    assert [task["kwargs"] for task in tasks if task["name"] == "assay.aggregate"] == [f"batch={batch_id}"]
    workers = {task["name"]: task["worker"].split("-")[0] for task in tasks if task["name"] in expected}
    assert workers == {
        "assay.execute": "executor",
        "assay.check": "checker",
        "assay.judge": "judge",
        "assay.aggregate": "aggregator",
    }


def test_flower_asks_for_the_password_and_does_not_act(tmp_path: Path, redis_url: str) -> None:
    (tmp_path / "flowerconfig.py").write_text("basic_auth = None\nread_only = False\n")
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "ASSAY_BROKER_URL": redis_url}

    with running_flower(tmp_path, environment) as flower:
        answers = {
            "page without password": flower.get("/tasks", auth=None)[0],
            "API without password": flower.get("/api/tasks", auth=None)[0],
            "API with a wrong one": flower.get("/api/tasks", auth="watcher:guess")[0],
            "API with the right one": flower.get("/api/tasks")[0],
            "an act": flower.get("/api/task/async-apply/assay.refill", data=b"{}")[0],
        }
        words = Path(f"/proc/{flower.process.pid}/cmdline").read_text()
        environ = Path(f"/proc/{flower.process.pid}/environ").read_text()

    assert answers == {
        "page without password": 401,
        "API without password": 401,
        "API with a wrong one": 401,
        "API with the right one": 200,
        "an act": 403,
    }
    assert "s3cret" not in words and redis_url not in words
    assert "ASSAY_FLOWER_AUTH" not in environ


@pytest.mark.parametrize(
    ("environment", "sentence"),
    [
        ({}, "Flower watches a broker"),
        ({"ASSAY_BROKER_URL": "redis://127.0.0.1:1/0"}, "does not start without a password"),
        ({"ASSAY_BROKER_URL": "redis://127.0.0.1:1/0", "ASSAY_FLOWER_AUTH": ""}, "does not start without a password"),
        ({"ASSAY_BROKER_URL": "redis://127.0.0.1:1/0", "ASSAY_FLOWER_AUTH": "s3cret"}, "is not user:password"),
        ({"ASSAY_BROKER_URL": "redis://127.0.0.1:1/0", "ASSAY_FLOWER_AUTH": "a:b,s3cret:"}, "is not user:password"),
    ],
)
def test_flower_refuses_to_start_open(environment: dict[str, str], sentence: str) -> None:
    done = subprocess.run([*ASSAY, "flower"], env=environment, capture_output=True, text=True, timeout=60)

    assert done.returncode == 3
    assert sentence in done.stderr and "s3cret" not in done.stderr
