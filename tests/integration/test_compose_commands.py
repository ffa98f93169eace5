"""Every command line of the compose files as a plain process, with the environment and the secrets of its service.

Only places are replaced: names of hosts by loopback and a free port, folders of the image by temporary ones. Redis (or
RabbitMQ) is started by its service's command. PostgreSQL is a private one with the same user, password rule and
options: its image makes the database before it starts. Health checks are run wherever their programs are on PATH.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.compose import OURS, ROOT, load, merged
from support.rabbitmq import RabbitServer
from support.servers import PostgresServer, free_port, redis_program

from simulator import start as start_simulator

ASSAY = [sys.executable, "-m", "cli"]
WORKERS = ("executor", "checker", "judge", "aggregator")


class Installation:
    """The services of a compose file, on this machine."""

    def __init__(self, folder: Path, compose: dict[str, Any], places: dict[str, str]) -> None:
        self.folder = folder
        self.services = compose["services"]
        self.places = places
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.extra: dict[str, str] = {}
        subprocess.run([str(ROOT / "deploy" / "make-secrets.sh"), str(folder / "secrets")], check=True)

    def here(self, name: str, text: str) -> str:
        """A text of the compose file with the places of this machine."""
        places = {**self.places, "/run/secrets": str(self.secrets_of(name)), "$$": "$"}
        return re.sub("|".join(re.escape(place) for place in places), lambda found: places[found[0]], text)

    def secrets_of(self, name: str) -> Path:
        """The secrets a service is given, and no other."""
        folder = self.folder / f"secrets-{name}"
        if folder.exists():
            return folder
        folder.mkdir()
        for secret in self.services[name].get("secrets", []):
            shutil.copy(self.folder / "secrets" / secret, folder / secret)
        return folder

    def secret(self, name: str) -> str:
        return (self.folder / "secrets" / name).read_text().strip()

    def environment(self, name: str) -> dict[str, str]:
        """What the service's environment says, and what an operating system gives."""
        given = {key: self.here(name, value) for key, value in self.services[name].get("environment", {}).items()}
        path = f"{self.folder / 'bin'}:{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin"
        system = {"PATH": path, "HOME": str(self.folder), "ASSAY_SECRETS": str(self.secrets_of(name))}
        return {**system, **given, **(self.extra if name in OURS else {})}

    def command(self, name: str) -> list[str]:
        words = [self.here(name, word) for word in self.services[name]["command"]]
        return [*ASSAY, *words] if name in OURS else words

    def start(self, name: str, **more: str) -> None:
        with self.log(name).open("ab") as log:
            self.processes[name] = subprocess.Popen(
                self.command(name),
                env={**self.environment(name), **more},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def run(self, name: str, *words: str) -> subprocess.CompletedProcess[str]:
        """A service's command to its end, or with other words, as `docker compose run` does."""
        command = [*ASSAY, *words] if words else self.command(name)
        environment = self.environment(name)
        return subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, text=True, timeout=60)

    def is_healthy(self, name: str) -> bool:
        """The service's own health check."""
        kind, *words = [self.here(name, word) for word in self.services[name]["healthcheck"]["test"]]
        command = ["sh", "-c", *words] if kind == "CMD-SHELL" else words
        return subprocess.run(command, env=self.environment(name), capture_output=True, timeout=20).returncode == 0

    def wait_until_healthy(self, name: str) -> None:
        deadline = time.monotonic() + 60
        while not self.is_healthy(name):
            assert self.processes[name].poll() is None, self.log(name).read_text()
            assert time.monotonic() < deadline, self.log(name).read_text()
            time.sleep(0.3)

    def log(self, name: str) -> Path:
        return self.folder / f"{name}.log"

    def stop(self, *names: str) -> dict[str, int]:
        """SIGTERM, as an engine does; gives the exit codes."""
        for name in names:
            self.processes[name].send_signal(signal.SIGTERM)
        return {name: self.processes[name].wait(40) for name in names}

    def kill(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
                process.wait(10)


class ComposePostgres(PostgresServer):
    """PostgreSQL with the options of its service."""

    def command(self) -> list[str]:
        program, *options = load()["services"]["postgres"]["command"]
        assert program == "postgres"
        # Of an option that is given twice the last one counts.
        return [*super().command(), *options]


def rabbitmq_is_healthy(made: Installation, own: dict[str, str]) -> bool:
    """By its service's own check, where the program is."""
    kind, *words = made.services["rabbitmq"]["healthcheck"]["test"]
    behind = f"/usr/lib/rabbitmq/bin:{own['PATH']}:/usr/sbin"
    if not shutil.which(words[0], path=behind):
        return True
    assert kind == "CMD"
    environment = {**own, "PATH": behind}
    return subprocess.run(words, env=environment, capture_output=True, timeout=60, cwd=made.folder).returncode == 0


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    server = ComposePostgres()
    server.start()
    yield server
    server.remove()


def with_password_rule(server: PostgresServer, database: str, password: str) -> None:
    """From now on this database is open to the user `assay` with a password only, as in the image."""
    server.create_database(database)
    with psycopg.connect(f"host=127.0.0.1 port={server.port} user=assay dbname=postgres", autocommit=True) as admin:
        admin.execute(f"ALTER USER assay PASSWORD '{password}'")
        rules = server.data / "pg_hba.conf"
        rules.write_text(f"host {database} all 127.0.0.1/32 scram-sha-256\nhost postgres all 127.0.0.1/32 trust\n")
        admin.execute("SELECT pg_reload_conf()")


@pytest.fixture(params=["redis", "rabbitmq"])
def installation(
    request: pytest.FixtureRequest, tmp_path: Path, postgres: PostgresServer, bubblewrap: str
) -> Iterator[Installation]:
    broker = request.param
    rabbit = RabbitServer() if broker == "rabbitmq" else None
    ports = {name: free_port() for name in ("redis", "api", "flower")}
    database = f"compose_{broker}"
    places = {
        "postgres:5432/assay": f"127.0.0.1:{postgres.port}/{database}",
        "redis:6379": f"127.0.0.1:{ports['redis']}",
        "rabbitmq:5672": f"127.0.0.1:{rabbit.port if rabbit else 0}",
        "6379": str(ports["redis"]),
        "8080": str(ports["api"]),
        "5555": str(ports["flower"]),
        "/var/lib/assay": str(tmp_path / "data"),
        "/data": str(tmp_path / "redis"),
        # The image's start script, which becomes the user of the image.
        "docker-entrypoint.sh rabbitmq-server": rabbit.program if rabbit else "",
    }
    files = ["docker-compose.yml", *(["docker-compose.rabbitmq.yml"] if rabbit else [])]
    for folder in ("redis", "bin", "data"):
        (tmp_path / folder).mkdir()
    (tmp_path / "bin" / "redis-server").symlink_to(redis_program())
    made = Installation(tmp_path, merged(*files), places)
    with_password_rule(postgres, database, made.secret("assay_database_password"))
    with start_simulator() as simulator:
        (tmp_path / "secrets" / "anthropic_api_key").write_text("sk-simulated")
        made.extra = {"ANTHROPIC_BASE_URL": simulator.url, "ASSAY_SWEEP_SECONDS": "0.5", "ASSAY_GRACE_SECONDS": "3"}
        try:
            start_brokers(made, rabbit)
            yield made
        finally:
            # First: it finds the node as the child of the process that started it.
            if rabbit:
                rabbit.remove()
            made.kill()


def start_brokers(made: Installation, rabbit: RabbitServer | None) -> None:
    """By their services' own commands: Redis always, for the limits; RabbitMQ needs a node of its own beside it."""
    made.start("redis")
    if shutil.which("redis-cli"):
        made.wait_until_healthy("redis")
    if rabbit:
        own = {key: value for key, value in rabbit.environment.items() if "DEFAULT" not in key}
        made.start("rabbitmq", **own)
        rabbit.process = made.processes["rabbitmq"]
        deadline = time.monotonic() + 60
        while not rabbit.is_ready():
            assert time.monotonic() < deadline, made.log("rabbitmq").read_text()
            time.sleep(0.2)
        assert rabbitmq_is_healthy(made, own), made.log("rabbitmq").read_text()


def test_postgres_has_the_options_and_the_health_check_of_its_service(postgres: PostgresServer) -> None:
    service = load()["services"]["postgres"]
    with psycopg.connect(f"host=127.0.0.1 port={postgres.port} user=assay dbname=postgres") as connection:
        said = {name: connection.execute(f"SHOW {name}").fetchone() for name in ("max_connections", "shared_buffers")}

    assert said == {"max_connections": ("500",), "shared_buffers": ("256MB",)}
    if shutil.which("pg_isready"):
        kind, line = service["healthcheck"]["test"]
        environment = {"PATH": os.environ["PATH"], "PGPORT": str(postgres.port)}
        assert kind == "CMD-SHELL"
        assert subprocess.run(["sh", "-c", line], env=environment, timeout=20).returncode == 0
        gone = {**environment, "PGPORT": str(free_port())}
        assert subprocess.run(["sh", "-c", line], env=gone, timeout=20).returncode != 0


def test_every_command_of_the_compose_files_works_with_its_environment(installation: Installation) -> None:
    too_early = installation.run("executor")
    assert too_early.returncode == 4 and "run `assay migrate` first" in too_early.stderr

    migrated = installation.run("migrate")
    assert migrated.returncode == 0, migrated.stderr
    assert installation.run("migrate").returncode == 0
    open_to_all = installation.run("api")
    assert open_to_all.returncode == 3 and "token" in open_to_all.stderr
    token = installation.run("api", "token", "create", "my-team").stdout.strip()

    for name in ("api", *WORKERS, "flower"):
        installation.start(name)
    for name in ("api", *WORKERS, "flower"):
        installation.wait_until_healthy(name)
    batch = run_a_batch(installation, token)

    assert batch["state"] == "finished", batch
    assert batch["progress"]["outcomes"] == {"scored": 2}, batch
    logs = "".join(installation.log(name).read_text() for name in ("api", *WORKERS, "flower"))
    secrets = ("assay_database_password", "assay_broker_password", "assay_flower_auth", "anthropic_api_key")
    assert [name for name in secrets if installation.secret(name) in logs] == []
    assert token not in logs
    codes = installation.stop("api", *WORKERS, "flower")
    # An engine would start what failed again; what was told to stop says so.
    assert {name: code for name, code in codes.items() if code not in (0, -signal.SIGTERM)} == {}


def run_a_batch(installation: Installation, token: str) -> dict[str, Any]:
    """Through the API, with a simulated model: executor, checker, judge and aggregator each do their part."""
    server = f"http://127.0.0.1:{installation.places['8080']}"
    environment = {"PATH": os.environ["PATH"], "HOME": str(installation.folder), "ASSAY_TOKEN": token}
    models = ["--model", "simulated", "--judge-model", "simulated-judge", "--runs", "1", "--no-baseline"]
    skill = str(ROOT / "examples" / "csv-summary")
    submitted = subprocess.run(
        [*ASSAY, "submit", skill, *models, "--server", server],
        env=environment, capture_output=True, text=True, timeout=60, cwd=installation.folder,
    )  # fmt: skip
    assert submitted.returncode == 0, submitted.stderr
    request = urllib.request.Request(f"{server}/v1/batches/{submitted.stdout.strip()}")
    request.add_header("Authorization", f"Bearer {token}")
    deadline = time.monotonic() + 90
    while True:
        with urllib.request.urlopen(request, timeout=10) as answer:
            batch: dict[str, Any] = json.load(answer)
        if batch["state"] in ("finished", "cancelled") or time.monotonic() > deadline:
            return batch
        time.sleep(0.5)
