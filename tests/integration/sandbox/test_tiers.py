"""The tiers that are used by name only: what they stop, and that they clean up."""

import os
import socket
import subprocess
import uuid

import pytest

from service.errors import Unavailable
from service.sandbox import Command, Limits, Mount, Sandbox, SandboxFailed, bash, open_sandbox


@pytest.fixture(scope="session")
def landlock() -> Sandbox:
    try:
        return open_sandbox("landlock")
    except Unavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def plain() -> Sandbox:
    return open_sandbox("none")


@pytest.fixture(params=["landlock", "plain"])
def tier(request) -> Sandbox:
    return request.getfixturevalue(request.param)


def test_results_come_back(tier, workspace):
    finished = tier.run(
        Command(bash("cat; echo err >&2; echo $A; pwd; exit 9"), workspace, stdin=b"in ", env={"A": "b"})
    )
    assert finished.exit_code == 9
    assert finished.output.decode() == f"in err\nb\n{workspace.resolve()}\n"


def test_paths_stay_where_they_are(tier, workspace):
    assert tier.place(workspace, "/workspace") == str(workspace.resolve())


def test_a_program_that_is_not_there_is_the_command_s_failure(tier, workspace):
    assert tier.run(Command(("/no/such/program",), workspace)).exit_code == 127


def test_a_workspace_that_is_not_there_is_the_sandbox_s_failure(tier, workspace):
    with pytest.raises(SandboxFailed):
        tier.run(Command(bash("true"), workspace / "nowhere"))


@pytest.mark.parametrize("ending", ["exit 0", "sleep 60"], ids=["normal end", "time-out"])
def test_daemons_do_not_outlive_the_command(tier, workspace, ending):
    marker = f"assay-{uuid.uuid4().hex}"
    daemon = f"""setsid bash -c 'trap "" TERM HUP; exec -a {marker} sleep 60' </dev/null >/dev/null 2>&1 &"""
    finished = tier.run(Command(bash(f"{daemon} {ending}"), workspace, timeout_seconds=1))
    assert finished.timed_out is (ending != "exit 0")
    assert marker not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout


def test_limits_hold(tier, workspace):
    limits = Limits(file_bytes=1_000_000, memory_bytes=200 << 20)
    assert tier.run(Command(bash("head -c 5000000 /dev/zero > f"), workspace, limits=limits)).exit_code != 0
    program = bash("python3 -c 'bytearray(1 << 30)'")
    assert b"MemoryError" in tier.run(Command(program, workspace, limits=limits)).output


def test_the_worker_s_environment_is_not_inherited(tier, workspace, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")
    assert b"secret" not in tier.run(Command(bash("env; cat /proc/$PPID/environ"), workspace)).output


@pytest.mark.parametrize(
    "script",
    [
        "cat {secret}",
        "ls {outside}",
        "echo x > {outside}/new",
        "truncate -s 0 {secret}",
        "cat /proc/1/environ",
        "cat /proc/self/status",
        "cat /etc/shadow",
        "ln {secret} here",
        "mkfifo here",
        "exec 3<>/dev/tcp/127.0.0.1/{port}",
        "unshare -U true",
        "kill -0 {pid}",
        "touch /tmp/assay-planted",
    ],
)
def test_landlock_stops(landlock, workspace, script):
    outside = workspace.parent / "outside"
    outside.mkdir(exist_ok=True)
    outside.chmod(0o777)
    (outside / "secret").write_text("secret")
    (outside / "secret").chmod(0o666)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        filled = script.format(
            secret=outside / "secret", outside=outside, port=listener.getsockname()[1], pid=os.getpid()
        )
        finished = landlock.run(Command(bash(filled), workspace))
    assert finished.exit_code not in (0, None)
    assert b"secret" not in finished.stdout.split(b":")[0]
    assert (outside / "secret").read_text() == "secret"


def test_landlock_leaves_a_workspace_alone_that_is_not_writable(landlock, workspace):
    (workspace / "f").write_text("kept")
    command = Command(bash("cat f; echo x > f; rm -f f; touch g"), workspace, writable=False, merge_output=False)
    assert landlock.run(command).stdout == b"kept"
    assert [(path.name, path.read_text()) for path in workspace.iterdir()] == [("f", "kept")]


def test_landlock_lets_mounts_be_read(landlock, workspace):
    skill = workspace.parent / "skill"
    skill.mkdir()
    (skill / "SKILL.md").write_text("do it")
    command = Command(bash(f"cat {skill}/SKILL.md"), workspace, mounts=(Mount(skill, "/skill"),))
    assert landlock.run(command).output == b"do it"


def test_a_fork_bomb_under_landlock_is_gone_with_its_time(landlock, workspace):
    script = bash("bomb() { bomb | bomb & }; bomb; sleep 60")
    finished = landlock.run(Command(script, workspace, timeout_seconds=1, limits=Limits(processes=40)))
    assert finished.timed_out
    assert landlock.run(Command(bash("echo fine"), workspace)).output == b"fine\n"
