"""Trying a sandbox before it is trusted: each promise is tested with a command that breaks it if it can."""

import socket
from pathlib import Path
from typing import TypeVar

from service.errors import Unavailable
from service.sandbox.port import Command, Finished, Sandbox, SandboxFailed, bash
from service.sandbox.scratch import scratch

AnySandbox = TypeVar("AnySandbox", bound=Sandbox)

_EXIT_CODE = 7  # arrives only if the whole way works
# Each line prints the promise it saw broken. core_pattern is writable for whoever is root behind a false name.
_ATTEMPTS = r"""
cat "$SECRET/file" 2>/dev/null && echo "can read outside its folders"
(echo x > "$SECRET/planted") 2>/dev/null && echo "can write outside its folders"
[ -w /proc/sys/kernel/core_pattern ] && echo "is root on this machine"
grep -qzv '^PATH=' /proc/1/environ 2>/dev/null && echo "can read the environment of others"
(exec 3<>"/dev/tcp/127.0.0.1/$PORT") 2>/dev/null && echo "has the network of this machine"
mkfifo pipe 2>/dev/null && echo "has no system call filter"
"""
_BASICS = r"""
(echo x > file && echo x > "$HOME/file" && echo x > "$TMPDIR/file") || echo "cannot write its own folders"
exit 7
"""
_REMEDY = "see assay doctor and docs/security.md"


def prove(sandbox: AnySandbox) -> AnySandbox:
    """The same sandbox, if it kept its promises; raises Unavailable with the first one it broke."""
    attempts = "" if sandbox.tier == "none" else _ATTEMPTS
    try:
        finished = _try(sandbox, attempts + _BASICS)
    except SandboxFailed as error:
        raise Unavailable(f"the sandbox {sandbox.tier} does not work here: {error}; {_REMEDY}") from error
    broken = finished.output.decode("utf-8", "replace").strip()
    if broken or finished.exit_code != _EXIT_CODE:
        what = broken.splitlines()[0] if broken else f"ended with {finished.exit_code} instead of {_EXIT_CODE}"
        raise Unavailable(f"the sandbox {sandbox.tier} does not hold here: a command {what}; {_REMEDY}")
    return sandbox


def _try(sandbox: Sandbox, script: str) -> Finished:
    with scratch() as folder, socket.create_server(("127.0.0.1", 0)) as listener:
        workspace, secret = folder / "workspace", folder / "secret"
        workspace.mkdir(mode=0o700)
        _leave_open(secret)
        env = {"SECRET": str(secret), "PORT": str(listener.getsockname()[1])}
        return sandbox.run(Command(bash(script), workspace, env=env, timeout_seconds=20))


def _leave_open(secret: Path) -> None:
    """A folder that only the sandbox protects."""
    secret.mkdir()
    secret.chmod(0o777)
    (secret / "file").write_text("can read outside its folders\n")
    (secret / "file").chmod(0o666)
