"""What a hostile command tries, on the real sandbox. Each program prints what it got, or nothing."""

import os
import socket
import stat
import subprocess
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.sandbox import Command, Limits, Sandbox, bash
from service.sandbox.reader import CannotRead, Reader
from service.sandbox.removal import remove_tree

SYSTEM_CALLS = {
    "ptrace": (101, 16, 1, 0, 0),
    "process_vm_readv": (310, 1, 0, 0, 0, 0, 0),
    "bpf": (321, 0, 0, 0),
    "perf_event_open": (298, 0, 0, -1, -1, 0),
    "io_uring_setup": (425, 1, 0),
    "userfaultfd": (323, 0),
    "keyctl": (250, 0, 0, 0, 0),
    "unshare": (272, 0x10000000),
    "setns": (308, 0, 0),
    "open_by_handle_at": (304, -1, 0, 0),
    "mount": (165, 0, 0, 0, 0, 0),
    "umount2": (166, 0, 0),
    "pivot_root": (155, 0, 0),
    "mknod": (133, 0, 0o010600, 0),
    "clone into a new user namespace": (56, 0x10000011, 0, 0, 0, 0),
    "clone3": (435, 0, 0),
    "x32": (0x40000000 + 39,),
    "init_module": (175, 0, 0, 0),
    "kexec_load": (246, 0, 0, 0, 0),
    "memfd_secret": (447, 0),
}


@pytest.mark.parametrize(
    "path", ["/etc/shadow", "/root", "/home/other", "/var", "/sys", "/run", "/boot", "/etc/ssh", "/mnt", "/opt"]
)
def test_the_machine_s_files_are_not_there(run, path):
    assert run(f"cat {path} 2>/dev/null || ls {path} 2>/dev/null").output == b""


def test_no_visible_process_carries_the_worker_s_environment(run, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-very-secret")

    finished = run("cat /proc/[0-9]*/environ 2>/dev/null; env; cat /proc/[0-9]*/cmdline")

    assert b"sk-very-secret" not in finished.output
    assert b"PATH=" in finished.output


def test_host_paths_are_not_in_the_command_line_of_the_first_process(run, workspace):
    assert str(workspace).encode() not in run("cat /proc/1/cmdline").output


def test_no_file_is_inherited_but_the_three_streams(run_python):
    program = "import os\nfor n in range(3, 256):\n  try: os.fstat(n); print(n)\n  except OSError: pass"
    assert run_python(program).output == b""


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def test_the_machine_s_loopback_is_out_of_reach(run, listener):
    assert run(f"exec 3<>/dev/tcp/127.0.0.1/{listener.getsockname()[1]} && echo connected").exit_code != 0


def test_an_operator_may_allow_the_network(run, listener):
    script = f"exec 3<>/dev/tcp/127.0.0.1/{listener.getsockname()[1]} && echo connected"
    assert run(script, network=True).output == b"connected\n"


def test_the_outside_is_out_of_reach(run):
    finished = run("timeout 2 bash -c 'exec 3<>/dev/tcp/192.0.2.1/80' && echo connected")
    assert b"Network is unreachable" in finished.output


def test_host_sockets_without_a_file_are_out_of_reach(run_python):
    with socket.socket(socket.AF_UNIX) as server:
        name = f"\0assay-{uuid.uuid4().hex}"
        server.bind(name)
        server.listen()
        program = f"import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect({name!r})\nprint('connected')"
        finished = run_python(program)
    assert b"ConnectionRefusedError" in finished.output


@pytest.mark.parametrize("family", [16, 17, 31, 38, 40], ids=["netlink", "packet", "bluetooth", "alg", "vsock"])
def test_sockets_beyond_unix_and_internet_do_not_exist(run_python, family):
    program = f"import socket\ntry: socket.socket({family}, 3 if {family} in (16, 17) else 1)\n"
    program += "except OSError as e: print(e.errno)"
    assert run_python(program).output == b"97\n"


def test_a_fork_loop_stops_at_the_limit(run_python):
    program = """
import os, time
count = 0
try:
    while count < 3000:
        if os.fork() == 0:
            time.sleep(60)
        count += 1
except OSError:
    print(count)
"""
    finished = run_python(program, Limits(processes=40))
    assert 0 < int(finished.output) < 40


def test_a_fork_bomb_is_gone_with_its_time(run):
    finished = run("bomb() { bomb | bomb & }; bomb; sleep 60", Limits(processes=40), timeout_seconds=1)
    assert finished.timed_out
    assert run("echo fine", Limits(processes=40)).output == b"fine\n"


@pytest.mark.parametrize("place", ["/workspace", "/tmp", "/dev/shm", "$HOME"])
def test_filling_the_disk_with_many_files_ends_the_command(run, place):
    script = f"for i in $(seq 100); do head -c 4000000 /dev/zero > {place}/$i; sleep 0.05; done; echo finished"
    finished = run(script, Limits(disk_bytes=20_000_000))
    assert finished.stopped_by == "disk"
    assert b"finished" not in finished.output


@pytest.mark.parametrize("place", ["/workspace", "/tmp", "/dev/shm"])
def test_filling_the_disk_with_empty_folders_ends_the_command(run_python, place):
    program = f"import os\nfor i in range(6000):\n  os.mkdir('{place}/%d' % i)\nimport time; time.sleep(30)"
    assert run_python(program, Limits(entries=3_000), timeout_seconds=25).stopped_by == "disk"


@pytest.mark.parametrize(
    "script",
    [
        "head -c 20000000 /dev/zero > big",
        "truncate -s 1T big",
        'python3 -c \'f = open("big", "wb"); f.truncate(1 << 40)\'',
        "python3 -c 'import os; os.ftruncate(os.memfd_create(\"x\"), 200 << 20)'",
    ],
)
def test_one_file_cannot_grow_beyond_its_limit(run, workspace, script):
    finished = run(script, Limits(file_bytes=8_000_000))
    assert finished.exit_code != 0
    assert not (workspace / "big").exists() or (workspace / "big").stat().st_size <= 8_000_000


@pytest.mark.parametrize(
    "path", ["/x", "/dev/x", "/etc/x", "/usr/x", "/bin/x", "/proc/sys/kernel/core_pattern", "/home/x", "/etc/passwd"]
)
def test_the_system_cannot_be_written(run, path):
    assert run(f"(echo x > {path}) 2>/dev/null && echo written").output == b""


def test_mounts_cannot_be_changed(run):
    script = "mount -o remount,rw / ; umount /usr; mount -t tmpfs x /tmp"
    finished = run(f"({script}) >/dev/null 2>&1; touch /usr/x 2>/dev/null && echo written")
    assert finished.output == b""


def test_a_link_to_the_outside_is_not_followed_by_the_reader(run, workspace):
    run("ln -s /etc/shadow secret; ln -s / all; ln -s /proc/self/environ env")

    reader = Reader(workspace)

    assert reader.listing.files == ()
    for path in ("secret", "all/etc/shadow", "env"):
        with pytest.raises(CannotRead, match="a link"):
            reader.read_bytes(path)


def test_system_files_cannot_be_hard_linked_into_the_workspace(run, workspace):
    assert run("ln /usr/bin/env /etc/passwd /usr/bin/su .").exit_code != 0
    assert list(workspace.iterdir()) == []


def _is_running(marker: str) -> bool:
    found = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    return marker in found


@pytest.mark.parametrize("ending", ["exit 0", "sleep 60"], ids=["normal end", "time-out"])
def test_daemons_do_not_outlive_the_command(run, ending):
    marker = f"assay-{uuid.uuid4().hex}"
    daemon = f"""setsid bash -c 'trap "" TERM HUP INT; exec -a {marker} sleep 60' </dev/null >/dev/null 2>&1 &"""
    finished = run(f"{daemon} disown; {ending}", timeout_seconds=1)
    assert finished.timed_out is (ending != "exit 0")
    assert not _is_running(marker)


def test_a_background_job_that_holds_the_output_does_not_hold_us(run):
    finished = run("sleep 60 & echo done", timeout_seconds=20)
    assert (finished.output, finished.exit_code, finished.timed_out) == (b"done\n", 0, False)


def test_endless_output_is_cut_and_ended(run):
    finished = run("yes", output_bytes=10_000)
    assert (len(finished.output), finished.truncated, finished.stopped_by) == (10_000, True, "output")


def test_long_output_is_cut_but_the_command_may_finish(run):
    finished = run("head -c 50000 /dev/zero; exit 3", output_bytes=10_000)
    assert (len(finished.output), finished.truncated, finished.exit_code) == (10_000, True, 3)


def test_neither_pipes_nor_devices_can_be_made(run, workspace):
    run("mkfifo pipe; mknod null c 1 3; mknod disk b 8 0")
    assert list(workspace.iterdir()) == []


def test_a_socket_file_is_seen_as_one_and_not_opened(run_python, workspace):
    run_python("import socket\nsocket.socket(socket.AF_UNIX).bind('socket')")

    reader = Reader(workspace)

    assert reader.listing.skipped == {"socket": "a socket"}
    with pytest.raises(CannotRead):
        reader.read_bytes("socket")


def test_a_tree_of_five_thousand_levels_is_refused_and_removed(run_python, workspace):
    run_python("import os\nfor _ in range(5000):\n  os.mkdir('d'); os.chdir('d')\nopen('file', 'w')")

    with pytest.raises(CannotRead, match="deeper than 64 folders"):
        _ = Reader(workspace).listing
    remove_tree(workspace)

    assert not workspace.exists()


def test_strange_names_are_listed_read_and_shown(run_python, workspace):
    names = [b"\xff\xfe", b"new\nline", b"\x1b[2J", "\u202egnp.exe".encode(), b"-rf", b"x" * 255]
    run_python(f"for name in {names!r}:\n  open(name, 'wb').write(name)")

    reader = Reader(workspace)

    assert sorted(os.fsencode(path) for path in reader.listing.files) == sorted(names)
    assert {reader.read_bytes(path) for path in reader.listing.files} == set(names)


def test_setuid_files_lend_nothing_on_the_host(run, workspace):
    run("cp /usr/bin/id id; chmod 6755 id; mkdir d; chmod 2777 d")
    assert stat.S_IMODE((workspace / "id").stat().st_mode) == 0o755
    assert (workspace / "id").stat().st_uid == os.geteuid()


def test_su_gains_nothing_inside(run):
    assert b"uid=0" not in run("su -c id root </dev/null; id; cp /usr/bin/id x; chmod 4755 x; ./x").output


@pytest.mark.parametrize("name", SYSTEM_CALLS)
def test_dangerous_system_calls_are_refused(run_python, name):
    program = f"""
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
result = libc.syscall(*[ctypes.c_long(n) for n in {SYSTEM_CALLS[name]!r}])
print(result if result >= 0 else ctypes.get_errno())
"""
    assert run_python(program).output in (b"1\n", b"38\n")  # EPERM, ENOSYS


def test_other_processes_cannot_be_signalled(run):
    with subprocess.Popen(["sleep", "60"]) as bystander:
        run(f"kill -9 {bystander.pid} {os.getpid()} 1; kill -9 -1")
        assert bystander.poll() is None
        bystander.kill()


def test_private_memory_is_limited(run_python):
    finished = run_python("x = bytearray(1 << 30)", Limits(memory_bytes=256 << 20))
    assert b"MemoryError" in finished.output


def test_shared_memory_is_limited(run_python):
    finished = run_python("import mmap\nmmap.mmap(-1, 5 << 30)\nprint('got it')")
    assert b"got it" not in finished.output


def test_processor_time_is_limited(run):
    finished = run("while :; do :; done", Limits(cpu_seconds=1), timeout_seconds=30)
    assert finished.exit_code in (128 + 9, 128 + 24)  # SIGKILL, SIGXCPU
    assert not finished.timed_out


def test_open_files_are_limited(run_python):
    program = "import os\nn = 0\ntry:\n  while True: os.open('/dev/null', 0); n += 1\nexcept OSError: print(n)"
    assert int(run_python(program, Limits(open_files=64)).output) <= 61


def test_closed_files_are_open_for_us_afterwards(run, workspace):
    run("mkdir -p a/b; echo x > a/b/f; chmod 000 a/b/f a/b a")
    assert Reader(workspace).read_text("a/b/f") == "x\n"
    remove_tree(workspace)
    assert not workspace.exists()


def test_files_cannot_be_made_immutable(run, workspace):
    run("echo x > f; chattr +i f")
    (workspace / "f").unlink()


def test_there_is_no_terminal_to_type_into(run_python):
    program = """
import fcntl, os
try: print(os.open('/dev/tty', os.O_RDWR))
except OSError: pass
for request in (0x5412, 0x541C):
    try: print(fcntl.ioctl(0, request, b'x'))
    except OSError as error: print(error.errno)
"""
    assert run_python(program).output == b"1\n1\n"  # EPERM, before anybody asks whether it is a terminal


def test_the_first_process_leads_nowhere_else(run):
    finished = run("ls /proc/1/root/ 2>/dev/null; ls -d /proc/1/cwd/etc/shadow /proc/1/root/etc/shadow 2>/dev/null")
    assert b"shadow" not in finished.output
    assert b"boot" not in finished.output


def test_useful_programs_still_work(run):
    script = """
set -e
python3 -c 'import json, subprocess; print(subprocess.check_output(["echo", "python"]).decode(), end="")'
python3 -c 'import multiprocessing as m; m.Lock(); print("semaphores")'
echo 'b a' | tr ' ' '\\n' | sort > sorted && cat sorted
diff <(echo x) <(echo x) && echo substitution
mkdir -p deep/er && find . -name er | grep -q er && echo find
test -w "$HOME" && test -w "$TMPDIR" && echo folders
"""
    finished = run(script)
    assert finished.output.decode() == "python\nsemaphores\na\nb\nsubstitution\nfind\nfolders\n"


def test_git_works_where_it_is_installed(run):
    if run("command -v git").exit_code:
        pytest.skip("git is not installed")
    script = "git init -q . && git config user.email a@b && git config user.name n && touch f && git add f"
    assert run(f"{script} && git commit -qm m && git log --oneline | wc -l").output == b"1\n"


def test_a_folder_that_cannot_be_written_is_not(run, workspace, box: Sandbox):
    (workspace / "f").write_text("kept")
    command = Command(bash("cat f; (echo x > f) 2>/dev/null; rm -f f 2>/dev/null; touch g 2>/dev/null"), workspace)
    finished = box.run(Command(**{**command.__dict__, "writable": False}))
    assert finished.output == b"kept"
    assert [(path.name, path.read_text()) for path in workspace.iterdir()] == [("f", "kept")]


def test_what_a_command_leaves_belongs_to_us(run, workspace: Path):
    run("mkdir d; echo x > d/f; ln -s nowhere l")
    assert {path.lstat().st_uid for path in workspace.rglob("*")} == {os.geteuid()}
