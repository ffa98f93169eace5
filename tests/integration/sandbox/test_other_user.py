"""The worker as a user who is not root: the same promises, by a real change of user."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
NOBODY = 65_534
PROGRAM = '''
import json, os, sys
sys.path.insert(0, sys.argv[1])
from service.sandbox import Command, Limits, bash, open_sandbox
from service.sandbox.reader import Reader
from service.sandbox.scratch import scratch
box = open_sandbox(sys.argv[2])
FORKS = b"""
import os, time
count = 0
try:
    while count < 300:
        if os.fork() == 0: time.sleep(30)
        count += 1
except OSError: pass
print(count)
"""
with scratch() as folder:
    workspace = folder / "workspace"
    workspace.mkdir(mode=0o700)
    def run(script, **options):
        finished = box.run(Command(bash(script), workspace, **options))
        return [finished.exit_code, finished.output.decode(), finished.stopped_by]
    found = {
        "who": os.getuid(),
        "shadow": run("cat /etc/shadow 2>/dev/null; cat /proc/sys/kernel/core_pattern >/dev/null; echo end"),
        "core_pattern": run("[ -w /proc/sys/kernel/core_pattern ] && echo root; echo end"),
        "time": run("setsid sleep 77 & sleep 77", timeout_seconds=0.5),
        "forks": run("python3 -I -S -", stdin=FORKS, limits=Limits(processes=30))[1],
        "signal": run(f"kill -0 {os.getpid()} 2>/dev/null && echo alive; echo end"),
        "closed": run("mkdir -p a/b; echo x > a/b/f; chmod 000 a/b/f a/b a; cp /usr/bin/id i; chmod 4755 i"),
        "closed file": Reader(workspace).read_text("a/b/f"),
        "mode": oct((workspace / "i").stat().st_mode & 0o7777),
    }
found["left"] = folder.exists()
print(json.dumps(found))
'''


def _python() -> str:
    """An interpreter that another user can run; ours may lie in somebody's home."""
    for candidate in (sys.executable, "/usr/local/bin/python3", "/usr/bin/python3"):
        try:
            asked = [candidate, "-c", "import sys; sys.exit(sys.version_info < (3, 11))"]
            if subprocess.run(asked, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/").returncode == 0:
                return candidate
        except (FileNotFoundError, PermissionError):
            continue
    pytest.skip("no Python of 3.11 or later that another user may run")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else; this whole run is not root anyway")
@pytest.mark.parametrize("tier", ["bwrap", "landlock"])
def test_a_worker_that_is_not_root_keeps_the_same_promises(bubblewrap, tier):
    if subprocess.run(["test", "-r", ROOT / "service"], user=NOBODY, cwd="/").returncode:
        pytest.skip(f"{ROOT} is closed to others")
    asked = [_python(), "-B", "-c", PROGRAM, str(ROOT), tier]
    done = subprocess.run(
        asked, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/", capture_output=True, text=True, env={}
    )
    if tier == "landlock" and "landlock version" in done.stderr:
        pytest.skip("this kernel's landlock is too old")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)

    assert found["who"] == NOBODY
    assert found["shadow"][1].endswith("end\n") and "root:" not in found["shadow"][1]
    assert found["core_pattern"] == [0, "end\n", None]
    assert found["time"][2] == "timeout"
    assert 0 < int(found["forks"]) <= 30
    assert found["signal"] == [0, "end\n", None]
    assert found["closed file"] == "x\n"
    assert found["mode"] == "0o755"
    assert found["left"] is False
    assert "sleep 77" not in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout
