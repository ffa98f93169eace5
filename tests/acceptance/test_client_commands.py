"""The client commands as a person types them: against `assay serve`, and on the data folder without a server."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.fleet import write_skill
from support.servers import accepts, free_port

UNKNOWN = "01k3mz8w5tq4x7c9y2b6n0p1rs"


@dataclass
class Desk:
    """Where commands are typed: a folder, an environment, and what names the server or the data folder."""

    folder: Path
    environment: dict[str, str]
    where: list[str]

    def assay(self, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "cli", *words, *self.where]
        env = {**self.environment, **more}
        return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120, cwd=self.folder)

    def submit(self, agent: str, *words: str) -> str:
        done = self.assay("submit", "skill", "--command", agent, "--runs", "1", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


def settings(folder: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "ASSAY_SANDBOX": "none",
        "ASSAY_COMMANDS": '["*"]',
        "ASSAY_LOG_LEVEL": "warning",
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A whole installation in one process, its token in the client file of the one who types."""
    folder, port = tmp_path_factory.mktemp("server"), free_port()
    write_skill(folder / "skill", 2)
    local = Desk(folder, settings(folder), ["--data", str(folder / "data")])
    token = local.assay("token", "create", "default", "--scope", "submit", "--scope", "read").stdout.strip()
    words = ["serve", "--port", str(port), "--model", "simulated", *local.where]
    with (folder / "serve.log").open("wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "cli", *words], env=local.environment, stdout=log, stderr=log)
    deadline = time.monotonic() + 60
    while not accepts(port):
        assert process.poll() is None and time.monotonic() < deadline, (folder / "serve.log").read_text()
        time.sleep(0.05)
    filed = folder / ".config" / "assay" / "client.toml"
    filed.parent.mkdir(parents=True)
    filed.write_text(f'server = "http://127.0.0.1:{port}"\ntoken = "{token}"\n')
    yield Desk(folder, local.environment, [])
    process.send_signal(signal.SIGTERM)
    process.wait(30)


@pytest.fixture(scope="module")
def finished(server: Desk) -> str:
    """A finished batch of 4 runs."""
    batch = server.submit("/bin/bash -c 'echo x > answer.txt'")
    assert server.assay("watch", batch).returncode == 0
    return batch


@pytest.fixture(params=["server", "data folder"])
def desk(request: pytest.FixtureRequest, server: Desk) -> Desk:
    """The same batches, asked of the server and of its data folder."""
    if request.param == "server":
        return server
    return Desk(server.folder, server.environment, ["--data", str(server.folder / "data")])


def test_everything_about_a_finished_batch_can_be_fetched(desk: Desk, finished: str, tmp_path: Path) -> None:
    status = json.loads(desk.assay("status", finished, "--json").stdout)
    assert (status["state"], status["progress"]["outcomes"]) == ("finished", {"scored": 4})
    assert finished in desk.assay("status").stdout
    assert desk.assay("results", finished).stdout.startswith("# Benchmark")
    assert "scored" in desk.assay("watch", finished).stdout

    done = [
        desk.assay("results", finished, "-o", str(tmp_path / "results")),
        desk.assay("report", finished, "-o", str(tmp_path / "report.html")),
        desk.assay("export", finished, "-o", str(tmp_path / "workspace")),
        desk.assay("export", finished, "-o", str(tmp_path / "workspace.zip")),
    ]

    assert [one.returncode for one in done] == [0, 0, 0, 0], [one.stderr for one in done]
    assert (tmp_path / "report.html").read_bytes() == (tmp_path / "results" / "report.html").read_bytes()
    metadata = list((tmp_path / "workspace").glob("iteration-*/eval-*/with_skill/eval_metadata.json"))
    assert len(metadata) == 2
    assert desk.assay("export", finished, "-o", str(tmp_path / "workspace")).returncode == 3


@pytest.mark.parametrize(
    ("gate", "code", "state"),
    [
        (["--fail-under", "0.9"], 0, "passed"),
        (["--min-delta", "0.1"], 1, "failed"),
        (["--require-verdict", "helps"], 2, "undecided"),
    ],
)
def test_gates_decide_the_exit_code_of_results(
    gate: list[str], code: int, state: str, desk: Desk, finished: str, tmp_path: Path
) -> None:
    files = ["--junit", str(tmp_path / "junit.xml"), "--summary", str(tmp_path / "summary.md")]

    done = desk.assay("results", finished, *gate, *files)

    assert (done.returncode, f"gate {gate[0]}" in done.stdout, f": {state}: " in done.stdout) == (code, True, True)
    assert gate[0] in (tmp_path / "junit.xml").read_text()
    assert gate[0] in (tmp_path / "summary.md").read_text()


def test_a_batch_is_paused_resumed_cancelled_and_retried(desk: Desk) -> None:
    batch = desk.submit("/bin/sleep 30", "--key", f"slow {len(desk.where)}".replace(" ", "-"))

    told = [desk.assay(word, batch) for word in ("pause", "resume")]
    interim = desk.assay("results", batch, "--fail-under", "0.1")
    cancelled = desk.assay("cancel", batch)

    assert [one.returncode for one in told] == [0, 0], [one.stderr for one in told]
    assert "paused" in told[0].stdout and "paused" not in told[1].stdout
    assert (interim.returncode, "interim: batch" in interim.stderr, "Interim" in interim.stdout) == (2, True, True)
    assert cancelled.returncode == 0, cancelled.stderr
    assert "cancelled" in desk.assay("watch", batch).stdout
    assert desk.assay("cancel", batch).returncode != 0
    assert desk.assay("retry", batch, "--outcome", "timeout").stdout == "0 runs go on\n"


def test_an_unknown_batch_is_one_clear_sentence(desk: Desk) -> None:
    words = ("status", "watch", "cancel", "pause", "resume", "retry", "results", "report", "export")

    for word in words:
        done = desk.assay(word, UNKNOWN)
        assert (done.returncode, done.stderr.count("\n")) == (3, 1), f"{word}: {done.stderr}"
        assert f"there is no batch {UNKNOWN}" in done.stderr


def test_a_wrong_token_and_a_wrong_server_are_one_clear_sentence(server: Desk) -> None:
    token = server.assay("status", ASSAY_TOKEN="assay_wrong")
    absent = server.assay("status", ASSAY_SERVER="http://127.0.0.1:1")
    nonsense = server.assay("status", "--server", "no address")

    assert (token.returncode, "token" in token.stderr) == (3, True)
    assert (absent.returncode, "does not answer" in absent.stderr) == (4, True)
    assert nonsense.returncode in (3, 4)
    assert all("Traceback" not in one.stderr and one.stderr.count("\n") == 1 for one in (token, absent, nonsense))


def test_what_is_submitted_to_a_data_folder_waits_and_says_how_it_is_worked_off(tmp_path: Path) -> None:
    write_skill(tmp_path / "skill", 1)
    desk = Desk(tmp_path, settings(tmp_path), ["--data", str(tmp_path / "data")])
    nothing = desk.assay("status")
    assert (nothing.returncode, "is no data folder yet" in nothing.stderr) == (3, True)
    assert Desk(tmp_path, desk.environment, []).assay("migrate", ASSAY_DATA=str(tmp_path / "data")).returncode == 0

    done = desk.assay("submit", "skill", "--command", "/bin/bash -c 'echo x > answer.txt'", "--runs", "1")
    batch = done.stdout.strip()
    waiting = json.loads(desk.assay("status", batch, "--json").stdout)
    worked = desk.assay("run", "skill", "--resume", "--json")

    assert "it waits for workers: assay run skill --resume" in done.stderr
    assert waiting["progress"]["settled"] == 0
    assert json.loads(worked.stdout.splitlines()[-1])["outcomes"] == {"scored": 2}
