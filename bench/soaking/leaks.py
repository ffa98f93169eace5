"""What may not grow: memory and open files of processes, connections, temporary folders; and no process left behind."""

import time
from dataclasses import dataclass
from typing import Any

import psutil
from redis import Redis
from soaking.fleet import SoakFleet
from sqlalchemy import text

LOOK_SECONDS = 15.0
WARM_SECONDS = 60.0  # what a process loads with its first work is no leak
MOST_GROWTH_MIB = 30.0
MOST_GROWTH_SHARE = 0.25
MOST_MORE_FILES = 20
STALE_SECONDS = 660.0  # twice the age at which leftovers are removed, and a little


@dataclass(frozen=True)
class Look:
    """One process at one moment."""

    name: str
    mebibytes: float
    files: int


class Leaks:
    """Looks at the fleet while nothing is killed, and once more after the drain."""

    def __init__(self, fleet: SoakFleet) -> None:
        self._fleet = fleet
        self._began: float | None = None
        self._looked_at = 0.0
        self._first: dict[int, Look] = {}
        self._last: dict[int, Look] = {}
        self._first_connections: dict[str, int] = {}

    def look(self) -> None:
        """Now and then; the first looks count for nothing."""
        now = time.monotonic()
        self._began = self._began or now
        if now - self._looked_at < LOOK_SECONDS or now - self._began < WARM_SECONDS:
            return
        self._looked_at = now
        self._last = self._all()
        if not self._first:
            self._first, self._first_connections = self._last, self._connections()

    def after_the_drain(self) -> tuple[list[str], dict[str, Any]]:
        """What leaks, in words, and the figures."""
        grown = [self._grown(pid) for pid in self._first if pid in self._last]
        left = self._left()
        broken = [*filter(None, grown), *(f"{name}: {found}" for name, found in left.items() if found)]
        connections = self._connections()
        for server, count in connections.items():
            if self._first and count > self._first_connections[server] + MOST_MORE_FILES:
                broken.append(f"{count} connections to {server}, {self._first_connections[server]} before")
        peak = {self._last[pid].name: round(self._last[pid].mebibytes) for pid in self._last}
        figures = {
            "processes_watched_in_peace": len(self._first.keys() & self._last.keys()),
            "memory_mib": peak,
            "memory_growth_mib": round(sum(self._growth(pid) for pid in self._first if pid in self._last), 1),
            "connections": connections,
            "left_behind": {name: len(found) for name, found in left.items()},
        }
        return broken, figures

    def _growth(self, pid: int) -> float:
        return self._last[pid].mebibytes - self._first[pid].mebibytes

    def _grown(self, pid: int) -> str | None:
        first, last = self._first[pid], self._last[pid]
        if self._growth(pid) > max(MOST_GROWTH_MIB, MOST_GROWTH_SHARE * first.mebibytes):
            return f"{first.name} grew from {first.mebibytes:.0f} to {last.mebibytes:.0f} MiB in peace"
        if last.files > first.files + MOST_MORE_FILES:
            return f"{first.name} had {first.files} files open, then {last.files}"
        return None

    def _all(self) -> dict[int, Look]:
        found = {}
        for name, process in self._fleet.processes():
            try:
                found[process.pid] = Look(name, process.memory_full_info().pss / 2**20, process.num_fds())
            except psutil.Error:
                continue
        return found

    def _connections(self) -> dict[str, int]:
        count = text("select count(*) from pg_stat_activity where datname = current_database()")
        with self._fleet.parts.store.engine.begin() as connection:
            database = int(connection.execute(count).scalar_one())
        with Redis.from_url(self._fleet.servers.redis.url) as redis:
            return {"postgresql": database, "redis": int(redis.info("clients")["connected_clients"])}

    def _left(self) -> dict[str, list[str]]:
        known = {process.pid for _, process in self._fleet.processes()}
        return {"zombies": self._zombies(), "orphans": self._orphans(known), "temporary folders": self._folders()}

    def _zombies(self) -> list[str]:
        found = []
        for name, process in self._fleet.processes():
            try:
                if process.status() == psutil.STATUS_ZOMBIE:
                    found.append(f"{name} {process.pid}")
            except psutil.Error:
                continue
        return found

    def _orphans(self, known: set[int]) -> list[str]:
        """Processes that name our folder and belong to nobody."""
        bench = [psutil.Process(), *psutil.Process().parents()]
        servers = {*(one.pid for one in bench), self._fleet.simulator.process.pid, *self._fleet.servers.pids()}
        mark = str(self._fleet.folder)
        found = []
        for process in psutil.process_iter():
            try:
                is_ours = mark in " ".join(process.cmdline()) or process.environ().get("HOME") == mark
            except psutil.Error:
                continue
            if is_ours and process.pid not in known | servers:
                found.append(f"{process.pid} {' '.join(process.cmdline())[:80]}")
        return found

    def _folders(self) -> list[str]:
        """Temporary ones that a killed process left and nobody removed in good time."""
        now = time.time()
        entries = self._fleet.temporary.iterdir()
        return [path.name for path in entries if now - path.lstat().st_mtime > STALE_SECONDS]
