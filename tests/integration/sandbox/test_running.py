"""What callers rely on: results, errors of the sandbox apart from the command's, threads, forks, no leftovers."""

import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from service.errors import BadInput, Unavailable
from service.sandbox import Command, Limits, Mount, SandboxFailed, bash, open_sandbox
from service.sandbox.scratch import scratch
from service.sandbox.slots import user_of_a_command


def test_exit_code_output_and_streams_come_back(run):
    finished = run("echo out; echo err >&2; exit 41", merge_output=False)
    assert (finished.exit_code, finished.stdout, finished.stderr) == (41, b"out\n", b"err\n")


def test_merged_output_keeps_its_order(run):
    assert run("echo 1; echo 2 >&2; echo 3").output == b"1\n2\n3\n"


def test_stdin_and_environment_arrive(run):
    finished = run('cat; echo "$GREETING"', stdin=b"x" * 300_000, env={"GREETING": "hello"})
    assert finished.output == b"x" * 300_000 + b"hello\n"


def test_a_program_that_is_not_there_is_the_command_s_failure(box, workspace):
    assert box.run(Command(("/no/such/program",), workspace)).exit_code not in (None, 0)


def test_a_command_killed_by_a_signal_tells_it_as_a_shell_would(run):
    assert run("kill -9 $$").exit_code == 137


def test_mounts_can_be_read_and_not_written(box, workspace):
    skill = workspace.parent / "skill"
    skill.mkdir()
    (skill / "SKILL.md").write_text("do it")
    command = Command(
        bash("cat /skill/SKILL.md; (echo x > /skill/SKILL.md) 2>/dev/null || echo refused"),
        workspace,
        mounts=(Mount(skill, "/skill"),),
    )
    assert box.run(command).output == b"do itrefused\n"
    assert box.place(skill, "/skill") == "/skill"


def test_home_and_tmp_may_last_longer_than_one_command(box, workspace):
    home, tmp = workspace.parent / "home", workspace.parent / "tmp"
    home.mkdir()
    tmp.mkdir()
    for script in ("echo 1 > ~/f; echo 2 > /tmp/f", "cat ~/f /tmp/f"):
        finished = box.run(Command(bash(script), workspace, home=home, tmp=tmp))
    assert finished.output == b"1\n2\n"


def test_home_and_tmp_are_fresh_otherwise(run):
    run("touch ~/f /tmp/f /dev/shm/f")
    assert run("ls -A ~ /tmp /dev/shm | grep f").output == b""


def test_a_mount_that_is_not_there_is_the_sandbox_s_failure(box, workspace):
    with pytest.raises(SandboxFailed, match="/no/such"):
        box.run(Command(bash("echo x"), workspace, mounts=(Mount(Path("/no/such/folder"), "/x"),)))


def test_a_workspace_that_is_not_there_is_the_sandbox_s_failure(box, workspace):
    with pytest.raises(SandboxFailed, match="nowhere"):
        box.run(Command(bash("echo x"), workspace / "nowhere"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_a_workspace_behind_a_closed_folder_is_refused_with_the_remedy(box, workspace):
    inner = workspace / "inner"
    inner.mkdir()
    with pytest.raises(SandboxFailed, match=r"closed to others.*chmod o\+x"):
        box.run(Command(bash("echo x"), inner))


@pytest.mark.parametrize("argv", [(), ("echo", "x" * 200_000), ("echo", "a\0b")], ids=["empty", "long", "nul"])
def test_commands_that_cannot_be_started_are_refused(workspace, argv):
    with pytest.raises(BadInput):
        Command(argv, workspace)


def test_many_threads_run_at_once_each_with_its_own(box):
    def one(number: int) -> bytes:
        with scratch() as folder:
            workspace = folder / "workspace"
            workspace.mkdir(mode=0o700)
            return box.run(Command(bash(f"echo {number} > f; sleep 0.1; cat f; ls /tmp"), workspace)).output

    with ThreadPoolExecutor(8) as pool:
        outputs = list(pool.map(one, range(24)))

    assert outputs == [f"{number}\n".encode() for number in range(24)]


def test_runs_in_a_row_leave_no_zombies_and_hit_no_limit(run):
    before = zombies()

    for _ in range(60):
        assert run("true", Limits(processes=16)).exit_code == 0

    assert zombies() - before == set()


def zombies():
    # A browser of another test may have left some of its own: we inherit orphans.
    return {child.pid for child in psutil.Process().children() if child.status() == psutil.STATUS_ZOMBIE}


def test_runs_leave_no_open_files_and_no_folders(run, workspace):
    run("true")
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(5):
        run("true")
        run("sleep 5", timeout_seconds=0.05)
    assert sorted(os.listdir("/proc/self/fd")) == before
    assert os.listdir(workspace.parent) == ["workspace"]


PROGRAM = """
import os, sys
from pathlib import Path
from service.sandbox import Command, bash, open_sandbox
from service.sandbox.scratch import scratch
with scratch() as folder:
    workspace = folder / "workspace"
    workspace.mkdir(mode=0o700)
    box = open_sandbox("bwrap")
    if os.fork() == 0:
        print(box.run(Command(bash(sys.argv[1]), workspace)).output.decode(), flush=True)
        os._exit(0)
    os.wait()
"""


def _worker(script: str, **options: object) -> "subprocess.Popen[bytes]":
    root = str(Path(__file__).parents[3])
    return subprocess.Popen([sys.executable, "-c", PROGRAM, script], cwd=root, **options)  # type: ignore[call-overload,no-any-return]


def test_it_works_in_a_forked_worker(box):
    worker = _worker("echo from the child", stdout=subprocess.PIPE)
    assert worker.communicate()[0].strip() == b"from the child"


def _running(marker: str) -> list[psutil.Process]:
    return [process for process in psutil.process_iter(["cmdline"]) if marker in (process.info["cmdline"] or [])]


def _wait_until(condition: Callable[[], object], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)


def test_commands_end_with_a_worker_that_is_killed(box, workspace):
    marker = f"assay-{uuid.uuid4().hex}"
    # What it leaves behind lies in a folder of this test.
    environment = {**os.environ, "TMPDIR": str(workspace.parent)}
    worker = _worker(f"exec -a {marker} sleep 60", start_new_session=True, env=environment)
    _wait_until(lambda: _running(marker))
    assert _running(marker)

    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()

    _wait_until(lambda: not _running(marker))
    assert not _running(marker)


def test_a_sandbox_that_does_not_work_is_refused_with_the_reason(bubblewrap, workspace):
    if os.geteuid() != 0:
        pytest.skip("only root can choose users that do not exist")
    with pytest.raises(Unavailable, match="does not work here"):
        open_sandbox("bwrap", uid_base=2**32 - 10)


def test_a_work_folder_that_others_cannot_pass_is_refused(bubblewrap, workspace):
    if os.geteuid() != 0:
        pytest.skip("only root becomes somebody else")
    with pytest.raises(Unavailable, match="closed to others"):
        open_sandbox("bwrap", work=workspace)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes somebody else")
def test_commands_at_the_same_time_are_different_users_and_give_them_back():
    with user_of_a_command() as first, user_of_a_command() as second:
        assert len({0, first, second}) == 3
    with user_of_a_command() as again:
        assert again == first
    with pytest.raises(SandboxFailed, match="busy"), user_of_a_command(slots=1), user_of_a_command(slots=1):
        pass


def test_the_best_tier_is_bubblewrap_where_it_works(box):
    assert open_sandbox("best").tier == "bwrap"
