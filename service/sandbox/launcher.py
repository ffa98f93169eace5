"""A program of its own: starts one command without namespaces, stays with it, and leaves none of its processes.

    python -I -S launcher.py SPEC_FD STATUS_FD LEASH_FD

SPEC_FD     a JSON document: argv, env, cwd, uid, limits, landlock, seccomp
STATUS_FD   gets {"exit-code": N} once the command and all its descendants are gone; nothing if starting failed
LEASH_FD    ends when the worker dies; the command ends with it, as it does on SIGTERM

It imports nothing of ours, because it runs isolated, and it stays who it is: only the command becomes another user.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import struct
import sys
import time
from pathlib import Path
from typing import Any

PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, PR_SET_CHILD_SUBREAPER = 38, 22, 36
CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same numbers on every processor
# Landlock's rights: the first line is what a file can be asked for, the rest concerns folders.
EXECUTE, WRITE_FILE, READ_FILE, TRUNCATE, IOCTL_DEV = 1 << 0, 1 << 1, 1 << 2, 1 << 14, 1 << 15
READ_DIR, ALL_BELOW_ABI_3 = 1 << 3, (1 << 14) - 1
ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
KILL_SECONDS = 5.0


def main() -> int:
    """Start, wait, clear up, report."""
    spec_fd, status, leash = (int(argument) for argument in sys.argv[1:4])
    with os.fdopen(spec_fd, "rb") as file:
        spec = json.load(file)
    if sys.platform == "linux":
        prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake = wake_up_pipe()
    command = start(spec)
    if command is None:
        return 1
    code = wait(command, leash, wake)
    end_all(command, spec["uid"])
    if code is not None:
        os.write(status, json.dumps({"exit-code": code}).encode() + b"\n")
    return 0


def wake_up_pipe() -> int:
    """A pipe that gets a byte whenever a child ends or somebody asks us to stop."""
    reading, writing = os.pipe()
    for end in (reading, writing):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    return reading


def start(spec: dict[str, Any]) -> int | None:
    """The command's process id; None, with the reason on stderr, if it could not be started as asked."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        become(spec, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        reason = file.read()
    if reason:
        os.write(2, reason)
        return None
    return child


def become(spec: dict[str, Any], complaints: int) -> None:
    """In the child: give everything away, then turn into the command."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.setsid()
        close_all_but(complaints)
        ruleset = allow_paths(spec["landlock"]) if spec["landlock"] else None
        drop_user(spec["uid"])
        set_limits(spec["limits"], spec["uid"])
        confine(ruleset, spec["seccomp"])
        os.chdir(spec["cwd"])
        run(spec["argv"], spec["env"])
    except Exception as error:  # noqa: BLE001  whatever it was, it goes to the worker as a sentence
        os.write(complaints, f"launcher: {error}".encode())
    os._exit(127)


def run(argv: list[str], env: dict[str, str]) -> None:
    """Exec; a program that is not there is the command's own failure, with a shell's code for it."""
    try:
        os.execvpe(argv[0], argv, env)  # noqa: S606  that is the point
    except OSError as error:
        os.write(2, f"{argv[0]}: {error.strerror}\n".encode())


def close_all_but(kept: int) -> None:
    """Nothing of the worker's stays open but the three streams; `kept` closes by itself on exec."""
    os.closerange(3, kept)
    os.closerange(kept + 1, 4096)


def drop_user(uid: int | None) -> None:
    """Become the command's own user for good."""
    if uid is not None:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)


def set_limits(limits: dict[str, int], uid: int | None) -> None:
    """Set every limit hard; without a user of its own the command shares the count of processes with the worker."""
    for name, value in limits.items():
        if name == "nproc" and uid is None:
            value += threads_of(os.getuid())
        number = getattr(resource, "RLIMIT_" + name.upper())
        hard = resource.getrlimit(number)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(number, (value, value))


def threads_of(uid: int) -> int:
    """How many threads a user runs already."""
    total = 0
    for tasks in Path("/proc").glob("[0-9]*/task"):
        with contextlib.suppress(OSError):
            if tasks.stat().st_uid == uid:
                total += sum(1 for _ in tasks.iterdir())
    return total


def confine(ruleset: int | None, seccomp: "str | None") -> None:
    """Enter the Landlock rules and the system call filter; there is no way back."""
    if ruleset is not None or seccomp is not None:
        prctl(PR_SET_NO_NEW_PRIVS, 1)
    if ruleset is not None:
        check(libc().syscall(RESTRICT_SELF, ruleset, 0), "cannot enter landlock")
        os.close(ruleset)
    if seccomp is not None:
        code = bytes.fromhex(seccomp)
        buffer = ctypes.create_string_buffer(code, len(code))
        program = struct.pack("HxxxxxxP", len(code) // 8, ctypes.addressof(buffer))
        prctl(PR_SET_SECCOMP, 2, ctypes.create_string_buffer(program, len(program)))


def allow_paths(rules: dict[str, Any]) -> int:
    """A Landlock ruleset: everything is denied but reading `read`, writing `write` and using `devices`."""
    abi = rules["abi"]
    every = ALL_BELOW_ABI_3 | TRUNCATE | (IOCTL_DEV if abi >= 5 else 0)
    attributes = [every, *([3 if not rules["network"] else 0] if abi >= 4 else []), *([3] if abi >= 6 else [])]
    packed = struct.pack(f"{len(attributes)}Q", *attributes)
    ruleset: int = libc().syscall(CREATE_RULESET, ctypes.create_string_buffer(packed, len(packed)), len(packed), 0)
    check(ruleset, "cannot make a landlock ruleset")
    for paths, rights in (
        (rules["read"], EXECUTE | READ_FILE | READ_DIR),
        (rules["write"], every & ~IOCTL_DEV),
        (rules["devices"], READ_FILE | WRITE_FILE),
    ):
        for path in paths:
            allow(ruleset, path, rights)
    return ruleset


def allow(ruleset: int, path: str, rights: int) -> None:
    """Add one path; one that is not on this system is left out."""
    try:
        target = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    rights = rights if Path(path).is_dir() else rights & ON_FILES
    rule = struct.pack("=Qi", rights, target)
    check(libc().syscall(ADD_RULE, ruleset, 1, ctypes.create_string_buffer(rule, len(rule)), 0), f"cannot allow {path}")
    os.close(target)


def wait(command: int, leash: int, wake: int) -> int | None:
    """The command's exit code as a shell would give it; None if we were told to stop first."""
    asked_to_stop = []
    signal.signal(signal.SIGTERM, lambda *_: asked_to_stop.append(True))
    while True:
        code = reap(command)
        if code is not None or asked_to_stop:
            return code
        ready, _, _ = select.select([leash, wake], [], [], 5.0)
        if leash in ready:
            return None
        if wake in ready:
            os.read(wake, 4096)


def reap(command: int) -> int | None:
    """Take every ended child off the table; the command's code if it was among them."""
    code = None
    with contextlib.suppress(ChildProcessError):
        while True:
            child, status = os.waitpid(-1, os.WNOHANG)
            if child == 0:
                break
            if child == command:
                code = os.waitstatus_to_exitcode(status)
    return code if code is None or code >= 0 else 128 - code


def end_all(command: int, uid: int | None) -> None:
    """Kill what is left of the command's family until none is."""
    deadline = time.monotonic() + KILL_SECONDS
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(command, signal.SIGKILL)
    while time.monotonic() < deadline:
        if uid is not None:
            kill_user(uid)
        for child in children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        time.sleep(0.001)


def kill_user(uid: int) -> None:
    """Kill every process of the command's user at one stroke, however fast they fork."""
    child = os.fork()
    if child == 0:
        try:
            os.setresuid(uid, uid, uid)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(child, 0)


def children() -> list[int]:
    """Our own children: the command, and its orphans because we adopt them."""
    try:
        return [int(word) for word in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()]
    except OSError:
        return []


def prctl(*arguments: object) -> None:
    """prctl(2), with the rest of its arguments 0."""
    check(libc().prctl(*[*arguments, 0, 0, 0][:5]), f"cannot set process attribute {arguments[0]}")


def libc() -> ctypes.CDLL:
    """The C library."""
    return ctypes.CDLL(None, use_errno=True)


def check(result: int, message: str) -> None:
    """Raise with the reason if a system call failed."""
    if result < 0:
        raise OSError(f"{message}: {os.strerror(ctypes.get_errno())}")


if __name__ == "__main__":
    sys.exit(main())
