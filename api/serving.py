"""Serving the API with uvicorn: its own log lines are ours, open event streams do not hold up the end."""

import socket

import uvicorn

from api.app import create_app
from service.bootstrap import Parts
from service.errors import Unavailable

_GRACE_SECONDS = 2


def make_server(parts: Parts) -> uvicorn.Server:
    """A server that is not listening yet."""
    config = uvicorn.Config(
        create_app(parts),
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        timeout_keep_alive=30,
        backlog=1_024,
    )
    return uvicorn.Server(config)


def listen(host: str, port: int) -> socket.socket:
    """An open socket, so that a port in use is one sentence before anything else is started."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
    except OSError as error:
        made.close()
        raise Unavailable(f"cannot listen on {host}:{port}: {error.strerror}; choose another with --port") from error
    return made
