"""`assay run` as a person uses it: the real program, on the embedded default."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.fleet import AGENT, write_skill


def environment(folder: Path, **more: str) -> dict[str, str]:
    quick = {"ASSAY_LEASE_SECONDS": "3", "ASSAY_HEARTBEAT_SECONDS": "0.5", "ASSAY_SWEEP_SECONDS": "0.3"}
    return {"PATH": os.environ["PATH"], "HOME": str(folder), "ASSAY_SANDBOX": "none", **quick, **more}


def assay(folder: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "cli", *words]
    return subprocess.run(command, env=environment(folder, **more), capture_output=True, text=True, timeout=200)


def run(folder: Path, agent: str, cases: int = 2, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    skill = folder / "skill"
    if not skill.exists():
        write_skill(skill, cases)
    (folder / "agent.sh").write_text(agent)
    command = f"/bin/bash {folder / 'agent.sh'}"
    return assay(
        folder, "run", str(skill), "--command", command, "--data", str(folder / "data"), "--json", *words, **more
    )


def final(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.stdout, done.stderr
    return dict(json.loads(done.stdout.splitlines()[-1]))


def test_a_batch_is_run_whole_and_its_files_are_written(tmp_path: Path) -> None:
    done = run(tmp_path, "echo x > answer.txt", 2, "--runs", "2")

    said = final(done)
    assert done.returncode == 0
    assert (said["state"], said["outcomes"]) == ("finished", {"scored": 8})
    benchmark = json.loads(Path(said["paths"]["benchmark.json"]).read_text())
    assert [run["result"]["pass_rate"] for run in benchmark["runs"]] == [1.0] * 8
    assert benchmark["run_summary"]["delta"]["pass_rate"] == "+0.00"
    assert not list(Path("/tmp").glob(f"assay-run-*/{tmp_path.name}"))


def test_without_a_baseline_there_is_one_arm_and_no_delta(tmp_path: Path) -> None:
    said = final(run(tmp_path, "echo x > answer.txt", 1, "--runs", "2", "--no-baseline"))

    benchmark = json.loads(Path(said["paths"]["benchmark.json"]).read_text())
    assert said["outcomes"] == {"scored": 2}
    assert list(benchmark["run_summary"]) == ["with_skill"]


def test_the_skill_is_there_in_one_arm_only(tmp_path: Path) -> None:
    said = final(run(tmp_path, 'cp "$ASSAY_SKILL_DIR/SKILL.md" answer.txt', 1, "--runs", "1"))

    assert said["outcomes"] == {"scored": 1, "executor_error": 1}


def test_a_control_arm_that_holds_the_skill_is_contaminated_not_scored(tmp_path: Path) -> None:
    skill = write_skill(tmp_path / "skill", 1)
    (skill / "SKILL.md").write_text("---\nname: tiny\ndescription: x\n---\n" + "A secret procedure. " * 10)
    shutil.copy(skill / "SKILL.md", tmp_path / "leaked.md")

    done = run(tmp_path, f"cp {tmp_path}/leaked.md notes.md; echo x > answer.txt", 1, "--runs", "2")

    said = final(done)
    assert said["outcomes"] == {"scored": 2, "contaminated": 2}
    benchmark = json.loads(Path(said["paths"]["benchmark.json"]).read_text())
    assert {entry["configuration"] for entry in benchmark["uncounted_runs"]} == {"without_skill"}


@pytest.mark.parametrize(
    ("agent", "outcome", "words"),
    [
        ("echo broken >&2; exit 3", "executor_error", "ended with code 3: broken"),
        ("sleep 60", "timeout", "stopped after"),
        ("true", "gated", None),
    ],
)
def test_a_run_that_fails_ends_in_the_outcome_that_says_why(
    agent: str, outcome: str, words: str | None, tmp_path: Path
) -> None:
    done = run(tmp_path, agent, 1, "--runs", "1", "--no-baseline", ASSAY_EXECUTE_TIMEOUT_SECONDS="1")

    said = final(done)
    assert said["outcomes"] == {outcome: 1}
    assert done.returncode == (0 if outcome == "gated" else 2)
    benchmark = json.loads(Path(said["paths"]["benchmark.json"]).read_text())
    reasons = [entry.get("reason") or entry.get("error") for entry in benchmark["uncounted_runs"]]
    assert words is None or any(words in str(reason) for reason in reasons)


def test_versions_are_told_apart_and_can_be_compared(tmp_path: Path) -> None:
    run(tmp_path, "echo x > answer.txt", 1, "--runs", "1")
    (tmp_path / "skill" / "SKILL.md").write_text("---\nname: tiny\ndescription: better\n---\nnew words\n")

    done = run(tmp_path, "echo x > answer.txt", 1, "--runs", "1", "--against", "v0")

    assert "v1" in done.stderr
    benchmark = json.loads(Path(final(done)["paths"]["benchmark.json"]).read_text())
    assert list(benchmark["run_summary"])[:2] == ["new_skill", "old_skill"]
    assert benchmark["metadata"]["provenance"]["skill_version"] == "v1"


@pytest.mark.parametrize(
    ("gate", "code"),
    [(["--fail-under", "0.9"], 0), (["--min-delta", "0.1"], 1), (["--require-verdict", "helps"], 2)],
)
def test_gates_decide_the_exit_code(gate: list[str], code: int, tmp_path: Path) -> None:
    done = run(tmp_path, "echo x > answer.txt", 2, "--runs", "2", "--junit", str(tmp_path / "junit.xml"), *gate)

    assert done.returncode == code, done.stdout
    assert len(final(done)["gates"]) == 1
    assert (tmp_path / "junit.xml").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "nowhere", "--command", "x"], "not a folder"),
        (["run", "skill", "--command", "x", "--evals", "missing.json"], "cannot read missing.json"),
        (["run", "skill", "--command", "x", "--against", "v9"], "has no version 'v9'"),
        (["run", "skill", "--command", "x", "--resume"], "no unfinished batch"),
        (["run", "skill", "--command", "x", "--runner", "nobody"], "there is no runner 'nobody'"),
        (["run", "skill"], "needs a model"),
        (["worker", "cook"], "there is no worker role 'cook'"),
        (["worker", "judge"], "needs a broker"),
    ],
)
def test_bad_input_is_one_clear_sentence(words: list[str], said: str, tmp_path: Path) -> None:
    write_skill(tmp_path / "skill", 1)
    command = [sys.executable, "-m", "cli", *words]

    done = subprocess.run(command, env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=100)

    assert done.returncode == 3
    assert said in done.stderr and len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_a_data_folder_that_cannot_be_written_is_one_clear_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    write_skill(tmp_path / "skill", 1)

    done = assay(tmp_path, "run", str(tmp_path / "skill"), "--command", "x", "--data", str(tmp_path / "file" / "data"))

    assert done.returncode == 4
    assert "cannot create the data folder" in done.stderr and "Traceback" not in done.stderr


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 700 kB of its own; only root can have one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=700k,mode=755", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("a small disk can be mounted by root only")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


def test_a_full_disk_is_one_clear_sentence_from_the_start(tmp_path: Path, small_disk: Path) -> None:
    write_skill(tmp_path / "skill", 1)
    (small_disk / "filling").write_bytes(b"x" * 690_000)

    done = assay(tmp_path, "run", str(tmp_path / "skill"), "--command", "true", "--data", str(small_disk / "data"))

    assert done.returncode == 4 and "full" in done.stderr and "Traceback" not in done.stderr


def test_a_disk_that_fills_up_stops_the_batch_which_can_be_resumed(tmp_path: Path, small_disk: Path) -> None:
    write_skill(tmp_path / "skill", 2)
    agent = tmp_path / "agent.sh"
    agent.write_text("head -c 150000 /dev/urandom > noise.bin; echo x > answer.txt")
    words = ["run", str(tmp_path / "skill"), "--command", f"/bin/bash {agent}", "--data", str(small_disk / "data")]

    done = assay(tmp_path, *words, "--runs", "2")

    assert done.returncode == 4 and "is full; free some space and go on with --resume" in done.stderr


def test_a_read_only_data_folder_is_one_clear_sentence(tmp_path: Path, small_disk: Path) -> None:
    write_skill(tmp_path / "skill", 1)
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)

    done = assay(tmp_path, "run", str(tmp_path / "skill"), "--command", "true", "--data", str(small_disk / "data"))

    assert done.returncode == 4 and "Read-only file system" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"ASSAY_DATABASE_URL": "postgresql+psycopg://nobody@127.0.0.1:1/x"}, "the database does not answer"),
        ({"ASSAY_DATABASE_URL": "mysql://x/y"}, "not a database Assay knows"),
        ({"ASSAY_LEASE_SECONDS": "soon"}, "ASSAY_LEASE_SECONDS is 'soon'"),
    ],
)
def test_a_worker_that_cannot_start_says_why(settings: dict[str, str], said: str, tmp_path: Path) -> None:
    done = assay(tmp_path, "worker", "judge", ASSAY_BROKER_URL="redis://127.0.0.1:1/0", **settings)

    assert done.returncode in (3, 4)
    assert said in done.stderr and "Traceback" not in done.stderr


def test_a_worker_refuses_an_unmigrated_database_and_an_absent_broker(tmp_path: Path) -> None:
    there = {"ASSAY_DATA": str(tmp_path / "data"), "ASSAY_BROKER_URL": "redis://127.0.0.1:1/0"}

    empty = assay(tmp_path, "worker", "judge", **there)
    assert assay(tmp_path, "migrate", **there).returncode == 0
    silent = assay(tmp_path, "worker", "judge", **there)

    assert "run `assay migrate` first" in empty.stderr
    assert "the broker at redis://127.0.0.1:1/0 does not answer" in silent.stderr and silent.returncode == 4


def started(folder: Path, *words: str, cases: int = 30, seconds: float = 0.1) -> subprocess.Popen[str]:
    skill = folder / "skill"
    if not skill.exists():
        write_skill(skill, cases)
    (folder / "ledger.txt").touch()
    (folder / "agent.sh").write_text(AGENT.format(ledger=folder / "ledger.txt", seconds=seconds))
    command = [sys.executable, "-m", "cli", "run", str(skill), "--data", str(folder / "data"), "--json"]
    own = {"ASSAY_EXECUTOR_CONCURRENCY": "8", "ASSAY_MAX_ATTEMPTS": "50"}
    with (folder / "run.log").open("ab") as log:
        return subprocess.Popen(
            [*command, "--command", f"/bin/bash {folder / 'agent.sh'}", *words],
            env=environment(folder, **own),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )


def wait_for_starts(folder: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while len((folder / "ledger.txt").read_text().splitlines()) < count:
        assert time.monotonic() < deadline, (folder / "run.log").read_text()[-2000:]
        time.sleep(0.05)


def kill_family(process: subprocess.Popen[str]) -> None:
    for one in [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]:
        try:
            one.kill()
        except psutil.NoSuchProcess:
            continue
    process.communicate(timeout=20)


def assert_each_execution_paid_once(folder: Path, batch_id: str, expected: int) -> None:
    from support.fleet import Fleet

    Fleet(folder, None, None).assert_nothing_lost_and_nothing_twice(batch_id, expected)


def test_a_batch_killed_again_and_again_goes_on_where_it_was(tmp_path: Path) -> None:
    process = started(tmp_path, "--runs", "5")
    for starts in (30, 100, 180):
        wait_for_starts(tmp_path, starts)
        kill_family(process)
        process = started(tmp_path, "--resume")

    output, _ = process.communicate(timeout=200)

    said = json.loads(output.splitlines()[-1])
    assert said["outcomes"] == {"scored": 300}
    assert_each_execution_paid_once(tmp_path, said["batch_id"], 300)


def test_ctrl_c_stops_cleanly_and_resume_goes_on(tmp_path: Path) -> None:
    process = started(tmp_path, "--runs", "2", cases=30)
    wait_for_starts(tmp_path, 5)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert "go on with: assay run" in (tmp_path / "run.log").read_text()

    output, _ = started(tmp_path, "--resume").communicate(timeout=100)

    assert json.loads(output.splitlines()[-1])["outcomes"] == {"scored": 120}


def test_every_message_twice_changes_nothing_on_one_machine_either(tmp_path: Path) -> None:
    twice = str(Path(__file__).parents[1] / "support" / "twice")
    agent = AGENT.format(ledger=tmp_path / "ledger.txt", seconds=0.01)

    done = run(tmp_path, agent, 30, "--runs", "5", PYTHONPATH=twice, ASSAY_LOG_LEVEL="debug")

    said = final(done)
    assert done.stderr.count("nothing to do") >= 300
    assert_each_execution_paid_once(tmp_path, said["batch_id"], 300)
