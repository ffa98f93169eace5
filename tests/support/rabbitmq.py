"""A private RabbitMQ on free ports of loopback, with its own node name and folders.

No wheel carries RabbitMQ: `make system-tools` installs it where it can.
"""

import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path

import psutil
import pytest

from support.servers import Server, free_port


def rabbitmq_program() -> str:
    """rabbitmq-server from PATH; without it the test is skipped at home and fails in CI."""
    found = shutil.which("rabbitmq-server", path=f"{os.environ['PATH']}:/usr/sbin:/usr/lib/rabbitmq/bin")
    if not found:
        tell = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        tell("rabbitmq-server is not on PATH, and no wheel carries it; install the package rabbitmq-server")
    # Debian's program in sbin changes to a user of its own; the one behind it stays who we are.
    behind = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
    return str(behind) if behind.exists() else found


class RabbitServer(Server):
    """One RabbitMQ node that knows the user `assay`."""

    def __init__(self, password: str = "rabbit") -> None:
        self.program = rabbitmq_program()
        self.password = password
        self.distribution_port = free_port()
        super().__init__("rabbitmq")
        # The Erlang port mapper must be ours, too: one of the machine's may belong to another user. A node that finds
        # none starts a daemon, which nobody would stop.
        self.mapper_port = free_port()
        mapper = ["epmd", "-address", "127.0.0.1", "-port", str(self.mapper_port)]
        self.mapper = subprocess.Popen(mapper, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, cwd=self.folder)

    @property
    def environment(self) -> dict[str, str]:
        """Everything that would otherwise be shared with another node on this machine."""
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "RABBITMQ_NODENAME": f"assay-{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self.distribution_port),
            "RABBITMQ_MNESIA_BASE": str(self.folder / "mnesia"),
            "RABBITMQ_LOG_BASE": str(self.folder / "log"),
            "RABBITMQ_CONF_ENV_FILE": os.devnull,
            "RABBITMQ_CONFIG_FILE": str(self.folder / "none"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(self.folder / "plugins"),
            "RABBITMQ_PID_FILE": str(self.folder / "pid"),
            "RABBITMQ_DEFAULT_USER": "assay",
            "RABBITMQ_DEFAULT_PASS": self.password,
            "ERL_EPMD_PORT": str(self.mapper_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }

    @property
    def url(self) -> str:
        """Where clients connect."""
        return f"amqp://assay:{self.password}@127.0.0.1:{self.port}//"

    def command(self) -> list[str]:
        words = [f"{name}={value}" for name, value in self.environment.items()]
        return ["env", "-i", *words, self.program]

    def is_ready(self) -> bool:
        """It speaks AMQP: a wrong protocol header is answered with the right one."""
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection:
                connection.sendall(b"AMQP\x00\x00\x00\x00")
                return connection.recv(8).startswith(b"AMQP")
        except OSError:
            return False

    def stop(self, how: int = signal.SIGKILL) -> None:
        """The program is a script: the node is its child, and has children of its own."""
        if self.process and self.process.poll() is None:
            for child in psutil.Process(self.process.pid).children(recursive=True):
                child.send_signal(how)
        super().stop(how)

    def remove(self) -> None:
        """Stop the node and the port mapper."""
        self.stop()
        self.mapper.kill()
        self.mapper.wait(10)
        super().remove()
