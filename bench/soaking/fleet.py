"""The fleet of a soak: every part a process of its own that can be killed and is started again."""

import random
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
from processes import family, kill
from servers import Servers
from simulators import Simulator
from support.fleet import Fleet
from support.servers import accepts, free_port

from service.bootstrap import Parts
from service.storage.schema import migrate

WORKERS = ("executor", "executor", "checker", "judge", "judge", "aggregator")
SETTINGS = {
    "sandbox": "bwrap",
    "log_level": "warning",
    "lease_seconds": 10,
    "heartbeat_seconds": 2,
    "sweep_seconds": 1,
    "overtaken_seconds": 5,
    "lane_age_seconds": 2,
    "lane_poll_seconds": 1,
    "executor_concurrency": 6,
    "judge_concurrency": 6,
}


class SoakFleet:
    """Servers, simulator, workers and the API."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.temporary = folder / "tmp"
        self.temporary.mkdir(parents=True)
        # The users that agents run as must get through to their workspaces.
        folder.chmod(0o711)
        self.temporary.chmod(0o1777)
        self.servers = Servers()
        self.simulator = Simulator({}, "0.05,0.5")
        self._fleet = Fleet(folder, self.servers.postgres.create_database("soak"), self.servers.redis.url, **SETTINGS)
        reach = {"ANTHROPIC_BASE_URL": self.simulator.url, "ANTHROPIC_API_KEY": "any"}
        self._fleet.environment |= {**reach, "TMPDIR": str(self.temporary)}
        migrate(self.parts.store.engine)
        self._fleet.start(*WORKERS)
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._api = self._start_api()

    @property
    def parts(self) -> Parts:
        """To look into the database."""
        return self._fleet.parts

    def _start_api(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "cli", "serve", "--port", str(self._port)]
        with (self.folder / "api.log").open("ab") as log:
            return subprocess.Popen(command, env=self._fleet.environment, stdout=log, stderr=log)

    def roots(self) -> dict[str, int]:
        """The first process of every part of ours."""
        names = [f"{role}-{number}" for number, role in enumerate(WORKERS)]
        workers = dict(zip(names, (worker.pid for worker in self._fleet.workers), strict=True))
        return {**workers, "api": self._api.pid}

    def processes(self) -> Iterator[tuple[str, psutil.Process]]:
        """Every living process of ours, with the name of its part."""
        for name, pid in self.roots().items():
            for process in family(pid):
                yield name, process

    def kill_one(self, dice: random.Random) -> str:
        """SIGKILL to one part, a pause, and its start; says what it was."""
        victim = dice.choice(["worker"] * 5 + ["worker process"] * 3 + ["api", "redis", "postgresql"])
        pause = dice.uniform(0, 3)
        if victim == "worker":
            return self._kill_worker(dice.randrange(len(WORKERS)), pause)
        if victim == "worker process":
            return self._kill_below_supervisor(dice)
        if victim == "api":
            kill([self._api.pid])
            self._api.wait(10)
            time.sleep(pause)
            self._api = self._start_api()
        else:
            server = self.servers.redis if victim == "redis" else self.servers.postgres
            self.servers.kill(server)
            time.sleep(pause)
            self.servers.start(server)
        return victim

    def _kill_worker(self, number: int, pause: float) -> str:
        """A whole worker with its agents, as when its machine goes."""
        kill([self._fleet.workers[number].pid])
        self._fleet.workers[number].wait(10)
        time.sleep(pause)
        self._fleet.start(WORKERS[number])
        self._fleet.workers[number] = self._fleet.workers.pop()
        return WORKERS[number]

    def _kill_below_supervisor(self, dice: random.Random) -> str:
        """Only the process that works: its supervisor starts it again."""
        found = self._fleet.worker_processes()
        if found:
            dice.choice(found).kill()
        return "worker process"

    def is_answering(self) -> bool:
        """Whether the API can be asked."""
        return accepts(self._port)

    def logs(self) -> str:
        """The end of every log."""
        return self._fleet.logs()

    def remove(self) -> None:
        """End everything by pid."""
        kill([self._api.pid])
        self._fleet.stop()
        self.simulator.stop()
        self.servers.remove()
