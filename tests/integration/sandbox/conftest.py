"""A real sandbox and a workspace that it can reach."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.errors import Unavailable
from service.sandbox import Command, Finished, Limits, Sandbox, bash, open_sandbox
from service.sandbox.scratch import scratch

Run = Callable[..., Finished]


def missing(reason: str) -> None:
    """At home a missing tool is a skip that says so; in CI it is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def box(bubblewrap: str) -> Sandbox:
    """The default tier, tried."""
    try:
        return open_sandbox("bwrap")
    except Unavailable as error:
        missing(str(error))
        raise


@pytest.fixture
def workspace() -> Iterator[Path]:
    """An empty folder of a run."""
    with scratch() as folder:
        path = folder / "workspace"
        path.mkdir(mode=0o700)
        yield path


@pytest.fixture
def run(box: Sandbox, workspace: Path) -> Run:
    """Run a bash script in the workspace, with limits by name and whatever else a command takes."""

    def run_script(script: str, limits: Limits = Limits(), **options: object) -> Finished:
        return box.run(Command(bash(script), workspace, limits=limits, **options))  # type: ignore[arg-type]

    return run_script


@pytest.fixture
def run_python(run: Run) -> Run:
    """The same for a Python program, which reads it from stdin."""

    def run_program(program: str, limits: Limits = Limits(), **options: object) -> Finished:
        return run("python3 -I -S -", limits, stdin=program.encode(), **options)

    return run_program
