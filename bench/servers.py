"""Redis and PostgreSQL as a fleet has them: both keep what they hold on disk, which the tests' servers do not."""

import subprocess
import time

from processes import kill
from support.servers import PostgresServer, RedisServer


class DurablePostgres(PostgresServer):
    """PostgreSQL that loses no commit when the machine stops."""

    def command(self) -> list[str]:
        return [*super().command(), "-c", "fsync=on"]


class DurableRedis(RedisServer):
    """Redis that writes what it holds to disk every second."""

    def command(self) -> list[str]:
        return [*super().command(), "--appendonly", "yes"]


class Servers:
    """Both, started together and removed together."""

    def __init__(self) -> None:
        self.redis = DurableRedis()
        self.postgres = DurablePostgres()
        self.redis.start()
        self.postgres.start()

    def pids(self) -> list[int]:
        """The heads of both."""
        return [server.process.pid for server in (self.redis, self.postgres) if server.process]

    def kill(self, *which: RedisServer | PostgresServer) -> None:
        """SIGKILL, to the database's own processes too."""
        for server in which or (self.redis, self.postgres):
            if server.process:
                kill([server.process.pid])
                server.process.wait(10)
                server.process = None

    def start(self, *which: RedisServer | PostgresServer) -> None:
        """Bring them back on their ports."""
        for server in which or (self.redis, self.postgres):
            _start_patiently(server)

    def remove(self) -> None:
        """Stop by pid and delete their folders."""
        self.redis.remove()
        self.postgres.remove()


def _start_patiently(server: RedisServer | PostgresServer, tries: int = 10) -> None:
    """A killed server's port or memory may be held for a moment longer."""
    for left in reversed(range(tries)):
        try:
            server.start()
        except (RuntimeError, OSError, subprocess.SubprocessError):
            server.stop()
            if not left:
                raise
            time.sleep(0.5)
        else:
            return
