"""A hostile agent that tries every way it can think of to read what is not its own."""

import json
import os
import shlex
from pathlib import Path
from typing import Any

import pytest
from support.whole_batch import WithModels

from schemas.states import Outcome
from service.runners.command import CommandRunner
from service.runners.messages import MessagesRunner
from service.sandbox import Sandbox
from service.sandbox.reader import Reader
from service.submitting import Refused, Submission
from simulator import Simulator

KEY = "sk-the-real-key"  # as in the fixture of the client
WORKER_SECRET = "worker-environment-7c1f"
NEIGHBOUR_SECRET = "neighbour-workspace-9a2e"
EXPECTATION = "expectation-51bd"
SECRETS = (KEY, WORKER_SECRET, NEIGHBOUR_SECRET, EXPECTATION)

WAYS = [
    "env; printenv; set",
    "cat /proc/1/environ /proc/self/environ /proc/*/environ | tr '\\0' '\\n'",
    "cat /proc/1/cmdline /proc/*/cmdline | tr '\\0' ' '",
    "cat {suite}/evals.json; ls -la {suite}",
    "cat {neighbour}/workspace/answer.md; ls -la {neighbour} {work}",
    "find / -path /usr -prune -o -name 'evals*.json' -exec cat {} + 2>/dev/null",
    "grep -rs 'sk-the\\|worker-env\\|neighbour-w\\|expectation-' / --exclude-dir=proc --exclude-dir=usr; true",
    "ln -s {suite}/evals.json here; cat here",
    "ls -la /proc/self/fd /proc/1/fd; for f in /proc/1/fd/*; do timeout 1 head -c 1000 $f; done",
    "cat /proc/1/root{suite}/evals.json; ls /proc/1/cwd/..",
    "(exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET /control/requests HTTP/1.0\\r\\n\\r\\n' >&3; timeout 2 cat <&3)",
    "python3 -c \"import socket; s=socket.create_connection(('127.0.0.1', {port}), 2); print(s)\"",
    "cat ~/.anthropic/* ~/.config/anthropic/* /root/.anthropic/* /root/.bash_history /etc/shadow",
    "unshare -r -m bash -c 'mount -t proc proc /mnt; cat /mnt/*/environ'; mount --bind / /mnt",
    'python3 -c "import ctypes; print(ctypes.CDLL(None).ptrace(16, 1, 0, 0))"; cat /proc/kcore | head -c 100; dmesg',
    "tar cf all.tar --exclude=usr --exclude=proc --exclude=dev --exclude=workspace /; ls -la .. ../*",
    "su -c env; sudo env; nsenter -t 1 -a env",
]


@pytest.fixture
def surroundings(work: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What a worker has around a run: its environment, the suite, another run's workspace; all readable by anybody."""
    monkeypatch.setenv("ASSAY_DATABASE_URL", f"postgresql://assay:{WORKER_SECRET}@db/assay")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    suite, neighbour = work / "suite", work / "neighbour"
    (neighbour / "workspace").mkdir(parents=True)
    (neighbour / "workspace" / "answer.md").write_text(NEIGHBOUR_SECRET)
    suite.mkdir()
    (suite / "evals.json").write_text(json.dumps({"evals": [{"id": 1, "expectations": [EXPECTATION]}]}))
    return {"suite": str(suite), "neighbour": str(neighbour), "work": str(work)}


def filled(text: str, places: dict[str, str]) -> str:
    for name, value in places.items():
        text = text.replace("{" + name + "}", value)
    return text


def test_a_hostile_agent_reads_no_secret_by_any_way_and_every_try_is_in_the_transcript(
    runner: MessagesRunner, simulator: Simulator, assign: Any, surroundings: dict[str, str]
) -> None:
    assert os.environ["ANTHROPIC_API_KEY"] == KEY
    places = {**surroundings, "port": simulator.url.rsplit(":", 1)[1]}
    tries = [{"name": "Bash", "input": {"command": filled(way, places), "timeout": 10_000}} for way in WAYS]
    files = [
        f"{places['suite']}/evals.json",
        "../../neighbour/workspace/answer.md",
        "/proc/self/environ",
        "/etc/shadow",
    ]
    tries += [{"name": "Read", "input": {"file_path": path}} for path in files]
    tries += [{"name": "Grep", "input": {"pattern": ".", "path": places["work"], "output_mode": "content"}}]
    tries += [{"name": "Glob", "input": {"pattern": "**/*", "path": "/"}}]
    simulator.configure(script={"agent": [{"turns": [{"tools": tries}, {"text": "I have tried everything."}]}]})
    assignment = assign()

    execution = runner.run(assignment)

    assert execution.transcript_events is not None
    events = [json.loads(line) for line in execution.transcript_events.splitlines()]
    used = [event for event in events if event["type"] == "tool"]
    assert len(used) == len(tries) >= 15
    results = "\n".join(event["result"] for event in used)
    # The words the agent itself typed into its commands come back in error messages; only whole secrets count.
    assert not [secret for secret in SECRETS if secret in results]
    reader = Reader(assignment.workspace)  # as outputs are collected: no link of the agent's is followed
    left = b"".join(reader.read_bytes(path) for path in reader.listing.files)
    assert not [secret for secret in SECRETS if secret.encode() in left]
    assert not [secret for secret in SECRETS if secret in json.dumps(simulator.requests())]
    for way in WAYS:
        assert json.dumps(filled(way, places), ensure_ascii=False)[1:-1] in execution.transcript


def left_in(workspace: Path) -> bytes:
    reader = Reader(workspace)
    return b"".join(reader.read_bytes(path) for path in reader.listing.files)


def test_a_hostile_program_reads_no_secret_by_any_way_and_every_try_is_in_the_transcript(
    sandbox: Sandbox, simulator: Simulator, assign: Any, work: Path, surroundings: dict[str, str]
) -> None:
    places = {**surroundings, "port": simulator.url.rsplit(":", 1)[1]}
    own = [
        "cat /assay/* /assay/*/* /assay/../assay/prompt.md; ls -laR /assay /skill",
        "cat $(dirname $ASSAY_PROMPT_FILE)/../* ../prompt.md ../skill/*/*; ls -la ../..",
        'cat "$1/evals.json" "$2" "$3"/*; ls -la "$1" "$3"',
        'ln -s "$1/evals.json" .assay-result.json; echo "{}"',
        "ls -la ~ ~/.. /tmp /dev/shm; cat ~/.claude/* /home/*/*",
    ]
    ways = [filled(way, places) for way in (*WAYS, *own)]
    tries = (
        f'echo {shlex.quote(way)}; timeout 10 bash -c {shlex.quote(way)} agent "$@"; echo; echo tried' for way in ways
    )
    (work / "agent.sh").write_text("\n".join([*tries, "exit 0", ""]))
    words = (places["suite"], "/proc/self/environ", places["neighbour"])
    assignment = assign(skill=False, command=("/bin/bash", str(work / "agent.sh"), *words), timeout_seconds=240.0)

    execution = CommandRunner(sandbox).run(assignment)

    assert execution.transcript.splitlines().count("tried") == len(ways)
    for way in ways:
        assert way in execution.transcript
    told = execution.transcript.encode() + left_in(assignment.workspace)
    assert not [secret for secret in (*SECRETS, assignment.other_canary) if secret.encode() in told]
    assert not simulator.requests()


def staged_skill(folder: Path, files: list[str]) -> Path:
    (folder / "evals" / "files").mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: staged\ndescription: for tests\n---\n" + "Say what the rules are. " * 9
    )
    (folder / "evals" / "files" / "in.txt").write_text("an input")
    case = {"id": 1, "prompt": "Do it", "files": files, "expected_output": EXPECTATION, "expectations": [EXPECTATION]}
    (folder / "evals" / "evals.json").write_text(json.dumps({"skill_name": "staged", "evals": [case]}))
    return folder


@pytest.mark.parametrize("name", ["evals.json", "evals/evals.json", "evals", ".", "SKILL.md"])
def test_no_suite_can_have_its_expectations_staged(work: Path, simulator: Simulator, name: str) -> None:
    parts = WithModels(work / "data", simulator.url)
    skill = staged_skill(work / "staged", ["in.txt", name])

    with pytest.raises(Refused) as refused:
        parts.desk.submit(Submission(skill, settings={"command": "true"}))

    parts.close()
    assert [(one.path, one.code) for one in refused.value.findings if one.level == "error"] == [
        ("evals[0].files[1]", "withheld_input")
    ]


def test_a_program_that_prints_all_it_was_given_prints_no_expectation(
    work: Path, simulator: Simulator, bubblewrap: str
) -> None:
    assert bubblewrap
    (work / "agent.sh").write_text("env; find . ~ /tmp /assay -type f -exec cat {} +; cat > all.txt\n")
    parts = WithModels(work / "data", simulator.url)
    skill = staged_skill(work / "staged", ["evals/files"])

    batch = parts.run_batch(
        skill, command=f"/bin/bash {work / 'agent.sh'}", runs_per_eval=1, judge_model="simulated-judge"
    )

    for row in parts.desk.runs(batch, "default"):
        kept = {name: parts.artifacts.get(blob.sha256) for name, blob in parts.store.runs.files(row.id).items()}
        told = kept["transcript.md"] + kept["outputs/all.txt"]
        assert row.outcome is Outcome.SCORED
        assert b"an input" in told and EXPECTATION.encode() not in told
        assert (b"Say what the rules are." in told) is (row.configuration == "with_skill")
    parts.close()
