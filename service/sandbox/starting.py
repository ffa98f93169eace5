"""Starting a tier's program with pipes, and leaving nothing of it behind."""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO

from service.sandbox.capture import Pipe, Watched
from service.sandbox.port import Command, SandboxFailed

PATH = "/usr/local/bin:/usr/bin:/bin"
STATUS = "@status-fd@"  # in an argv: becomes the number of the status pipe's writing end


@contextmanager
def started(
    argv: list[str], command: Command, *, uid: int | None, pass_fds: list[int], stop: Callable[[Watched], None]
) -> Iterator[Watched]:
    """A running program that speaks the status protocol; afterwards it is gone and its pipes are closed."""
    status_in, status_out = os.pipe()
    try:
        with _stdin(command.stdin) as stdin:
            process = _start(
                [part.replace(STATUS, str(status_out)) for part in argv],
                stdin=stdin,
                stderr=subprocess.STDOUT if command.merge_output else subprocess.PIPE,
                uid=uid,
                pass_fds=[*pass_fds, status_out],
            )
    except BaseException:
        os.close(status_in)
        raise
    finally:
        os.close(status_out)
    try:
        yield Watched(
            process=process,
            stdout=_pipe(process.stdout, command.output_bytes),
            stderr=_pipe(process.stderr, command.output_bytes) if process.stderr else None,
            status=Pipe(status_in, cap=65_536),
            stop=stop,
        )
    finally:
        _end(process, status_in)


@contextmanager
def files_in_memory(contents: list[bytes]) -> Iterator[list[int]]:
    """Open files that have no name, one per content, ready to be read."""
    with contextlib.ExitStack() as stack:
        numbers = []
        for content in contents:
            file = stack.enter_context(_nameless())
            file.write(content)
            file.seek(0)
            numbers.append(file.fileno())
        yield numbers


def _nameless() -> IO[bytes]:
    if not hasattr(os, "memfd_create"):  # only Linux has it
        return tempfile.TemporaryFile(buffering=0)
    return os.fdopen(os.memfd_create("assay", os.MFD_CLOEXEC), "w+b", buffering=0)


def _start(
    argv: list[str], *, stdin: int | IO[bytes], stderr: int, uid: int | None, pass_fds: list[int]
) -> subprocess.Popen[bytes]:
    """The environment is all but empty: what the program inherits, the command could read from /proc."""
    try:
        return subprocess.Popen(
            argv,
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=stderr,
            bufsize=0,
            env={"PATH": PATH},
            cwd="/",
            start_new_session=True,
            pass_fds=pass_fds,
            user=uid,
            group=uid,
            extra_groups=None if uid is None else [],
        )
    except OSError as error:
        raise SandboxFailed(f"the sandbox cannot start {argv[0]}: {error.strerror}") from error


@contextmanager
def _stdin(content: bytes) -> Iterator[int | IO[bytes]]:
    """A file rather than a pipe: nobody has to feed it."""
    if not content:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        yield file


def _pipe(stream: IO[bytes] | None, cap: int) -> Pipe:
    assert stream is not None
    return Pipe(stream.fileno(), cap)


def _end(process: subprocess.Popen[bytes], status: int) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()
    for stream in filter(None, (process.stdout, process.stderr)):
        stream.close()
    os.close(status)
