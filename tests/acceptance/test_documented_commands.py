"""Every command line of README and quickstart works as it is written.

Blocks marked `sh run` are run whole by tests/unit/test_docs.py. Here are the others, line by line, with what a reader
would put in: a skill, a model, an agent. The models are simulated.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.compose import OURS, ROOT, load
from support.servers import accepts, free_port

from simulator import start as start_simulator

PAGES = ("README.md", "docs/quickstart.md")
_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
VALIDATE = "assay validate my-skill"
RUNS = (
    "assay run my-skill --model simulated",
    "assay run my-skill --model MODEL",
    'assay run my-skill --command "/bin/bash $PWD/agent.sh" --judge-model MODEL',
    "assay run my-skill --runs 3 --model claude-sonnet-4-5 --judge-model claude-opus-4-5",
)
AGAINST = "assay run my-skill --model MODEL --against v0 --no-regression --junit gate.xml"
ESTIMATE = "assay estimate my-skill --runs 3 --executor-model claude-sonnet-4-5 --judge-model claude-opus-4-5"
CHECK = "assay check OUTPUTS --evals FILE --case 1"
DOCTOR = "assay doctor"
SERVE = "assay serve --model simulated"
SUBMIT = "assay submit my-skill --model simulated --server http://127.0.0.1:8080"
HERE = {VALIDATE, *RUNS, AGAINST, ESTIMATE, CHECK, DOCTOR, SERVE, SUBMIT}
# Lines that are not run as they stand, each with what is tried instead.
ELSEWHERE = {
    "make setup": "installs from the network; `make test` does the same with more, and then runs this test",
    'export PATH="$PWD/.venv/bin:$PATH"': "the environment of these tests has it",
    "export ANTHROPIC_API_KEY=...": "the environment of these tests has a key, and a simulator that takes it",
    "./deploy/make-secrets.sh": "run by tests/unit/deploy/test_secrets.py",
    "docker compose build": "needs a daemon; the Dockerfile is held against the packages by tests/unit/deploy",
    "docker compose run --rm api token create my-team": "run by test_compose_commands.py as a process",
    "docker compose up -d --scale judge=4": "run by test_compose_commands.py as processes",
}


def documented() -> set[str]:
    """All lines of the blocks that are not run whole, without their comments."""
    found = [
        line for page in PAGES for block in _BLOCK.findall((ROOT / page).read_text()) for line in block.splitlines()
    ]
    return {re.sub(r"\s+# .*$", "", line) for line in found}


def fleet() -> set[str]:
    """What the services of the compose file are told, which a test runs as plain processes."""
    services = load()["services"]
    return {" ".join(["assay", *services[name]["command"]]) for name in OURS}


def test_every_documented_line_is_tried_somewhere() -> None:
    assert documented() - HERE - set(ELSEWHERE) - fleet() == set()
    assert (HERE | set(ELSEWHERE)) - documented() == set()


class Reader:
    """Somebody with the environment of a terminal, a skill of their own and an agent."""

    def __init__(self, folder: Path, base_url: str) -> None:
        self.folder = folder
        programs = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = {"PATH": programs, "HOME": str(folder), "LANG": "C.UTF-8", "ASSAY_RUNS_PER_EVAL": "1"}
        self.with_a_key = {"ANTHROPIC_API_KEY": "sk-simulated", "ANTHROPIC_BASE_URL": base_url}

    def types(self, line: str, **put_in: str) -> "subprocess.CompletedProcess[str]":
        """A line of a page, with the words in capitals replaced."""
        for word, said in put_in.items():
            line = line.replace(word, said)
        environment = self.environment if "simulated" in line else {**self.environment, **self.with_a_key}
        done = subprocess.run(
            ["bash", "-c", line], cwd=self.folder, env=environment, capture_output=True, text=True, timeout=120
        )
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        return done


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory, bubblewrap: str) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("reader")
    # As root the sandbox's user is another, and passes through to the agent.
    for above in (folder, folder.parent, folder.parent.parent):
        above.chmod(0o755)
    shutil.copytree(ROOT / "examples" / "changelog-entry", folder / "my-skill")
    shutil.copy(ROOT / "examples" / "scripted-agent.sh", folder / "agent.sh")
    suite = folder / "my-skill" / "evals" / "evals.json"
    written = json.loads(suite.read_text())
    suite.write_text(json.dumps({"skill_name": written["skill_name"], "evals": written["evals"][:1]}))
    with start_simulator() as simulator:
        yield Reader(folder, simulator.url)


def outcomes(done: "subprocess.CompletedProcess[str]") -> set[str]:
    return set(re.findall(r"^  (\w+) +\d+$", done.stdout, re.MULTILINE))


def test_a_suite_is_validated_and_estimated(reader: Reader) -> None:
    assert reader.types(VALIDATE).returncode == 0
    assert reader.types(ESTIMATE).returncode == 0
    # What is wrong with this machine is said, and is no fault of the line.
    assert reader.types(DOCTOR).returncode in (0, 4)


@pytest.mark.parametrize("line", RUNS)
def test_a_documented_run_finishes_with_every_run_decided(reader: Reader, line: str) -> None:
    done = reader.types(line, MODEL="claude-sonnet-5-5")

    assert done.returncode == 0, done.stdout + done.stderr
    assert outcomes(done) and outcomes(done) <= {"scored", "gated"}, done.stdout


def test_a_new_version_is_held_against_the_first(reader: Reader) -> None:
    first = reader.types(RUNS[2], MODEL="claude-sonnet-5-5")
    assert first.returncode == 0, first.stdout + first.stderr
    with (reader.folder / "my-skill" / "SKILL.md").open("a") as skill:
        skill.write("\nOne line per change.\n")

    done = reader.types(AGAINST, MODEL="claude-sonnet-5-5")

    # One case decides nothing, so the gate says that: passed, failed or undecided.
    assert done.returncode in (0, 1, 2), done.stderr
    assert outcomes(done) <= {"scored", "gated"} and (reader.folder / "gate.xml").stat().st_size > 100


def test_outputs_are_checked_alone(reader: Reader) -> None:
    outputs = reader.folder / "outputs"
    outputs.mkdir()
    (outputs / "CHANGELOG.md").write_text("# nothing of what was asked for\n")

    done = reader.types(CHECK, OUTPUTS="outputs", FILE="my-skill/evals/evals.json")

    assert done.returncode == 1 and "gate failed" in done.stderr


def test_a_batch_is_submitted_to_the_server_of_the_quickstart(reader: Reader) -> None:
    port = free_port()
    log = reader.folder / "serve.log"
    with log.open("wb") as story:
        serving = subprocess.Popen(
            [*SERVE.split(), "--port", str(port)], cwd=reader.folder, env=reader.environment, stdout=story, stderr=story
        )
    try:
        deadline = time.monotonic() + 60
        while not accepts(port):
            assert serving.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.1)
        submitted = reader.types(SUBMIT.replace("8080", str(port)))
        assert submitted.returncode == 0, submitted.stderr
        watch = reader.types(f"assay watch {submitted.stdout.strip()} --server http://127.0.0.1:{port} # simulated")
        status = reader.types(f"assay status {submitted.stdout.strip()} --server http://127.0.0.1:{port} # simulated")
    finally:
        serving.send_signal(signal.SIGTERM)
        serving.wait(30)

    assert watch.returncode == 0, watch.stderr + log.read_text()
    assert "finished" in status.stdout and "error" not in status.stdout


def test_the_demo_shows_three_steps_and_a_benchmark(tmp_path: Path, bubblewrap: str) -> None:
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}

    done = subprocess.run(
        [ROOT / "examples" / "demo.sh"], env=environment, capture_output=True, text=True, timeout=240, cwd=tmp_path
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert [line[:7] for line in done.stdout.splitlines() if line.startswith("demo ")] == [
        "demo 1:",
        "demo 2:",
        "demo 3:",
    ]
    assert done.stdout.count("# Benchmark of changelog-entry") == 2
    assert outcomes(done) <= {"scored", "gated"} and "Traceback" not in done.stdout + done.stderr
