"""`assay flower`: Flower with our settings, behind a password, showing and not acting."""

import os
import sys
from typing import Annotated

import typer

from service.errors import BadInput
from service.settings import Settings, load_settings

EXAMPLES = """
Examples:

  ASSAY_FLOWER_AUTH=me:a-long-password assay flower

  assay flower --port 5556
"""
# Each costs about 5 kB; Flower's own default of 100,000 is more than its container may use.
_MOST_TASKS = "20000"
_COLUMNS = "name,kwargs,state,received,started,runtime,worker,uuid"


def flower(
    port: Annotated[int | None, typer.Option(min=1, max=65_535, help="The port it listens on.")] = None,
) -> None:
    """Watch the queues in a browser; needs a broker and ASSAY_FLOWER_AUTH.

    It becomes Flower: the process stays the same, so signals reach it.
    """
    wanted = flower_environment(load_settings(flower_port=port))
    # Flower's own variables are let through, ours are none of its business.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("ASSAY_", "ANTHROPIC_"))}
    command = [sys.executable, "-P", "-m", "celery", "flower"]
    os.execve(command[0], command, {**inherited, **wanted})  # noqa: S606  no shell is wanted


def flower_environment(settings: Settings) -> dict[str, str]:
    """Flower's settings, in variables rather than words of a command line, which everybody on the machine can read."""
    if settings.broker_url is None:
        raise BadInput("Flower watches a broker; set ASSAY_BROKER_URL, or use `assay watch` on one machine")
    return {
        "BROKER_URL": settings.broker_url,
        "FLOWER_BASIC_AUTH": _auth(settings),
        "FLOWER_ADDRESS": settings.flower_address,
        "FLOWER_PORT": str(settings.flower_port),
        "FLOWER_READ_ONLY": str(settings.flower_read_only),
        "FLOWER_MAX_TASKS": _MOST_TASKS,
        "FLOWER_TASKS_COLUMNS": _COLUMNS,
        # Else Flower runs a flowerconfig.py of the folder it happens to start in.
        "FLOWER_CONF": os.devnull,
    }


def _auth(settings: Settings) -> str:
    """The users Flower lets in; without any it would show everything to everybody, so it does not start."""
    if settings.flower_auth is None:
        raise BadInput("Flower does not start without a password; set ASSAY_FLOWER_AUTH to user:password")
    users = settings.flower_auth.get_secret_value().split(",")
    for user in users:
        name, _, password = user.strip().partition(":")
        if not name or not password:
            raise BadInput("ASSAY_FLOWER_AUTH is not user:password; divide several by commas")
    return ",".join(user.strip() for user in users)
