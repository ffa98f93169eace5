"""The runner `claude_code`: the command line that claude-agent-sdk brings with it, in the sandbox, one run at a time.

It has a home and a working folder of its own, no network but the gateway to the model, and no key of ours. The skill
is installed in its home in an arm that has one, and nowhere else.
"""

import functools
import importlib.util
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from schemas.metrics import Metrics
from schemas.states import Outcome
from service.errors import StageFailed, Unavailable
from service.limits.port import Purpose
from service.models.client import ModelClient
from service.models.gateway import Gateway
from service.models.passing import Allowance
from service.models.port import Call
from service.runners import arms, record
from service.runners.agent_prompt import task_message
from service.runners.claude_events import Events
from service.runners.commands import Places
from service.runners.endings import refuse_bad_end
from service.runners.notes import take_notes
from service.runners.port import Assignment, Execution, Usage
from service.runners.skill_watch import SkillWatch, staged_skill
from service.runners.toolbox import safe_name
from service.sandbox.port import WORKSPACE, Command, Finished, Limits, Mount, Sandbox
from service.sandbox.reader import Reader

_SOCKET = "/assay/model.sock"
_PROGRAM = "/assay/claude"
_MAX_EVENT_BYTES = 64 * 2**20
_ENVIRONMENT = {
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",
    "CLAUDE_CODE_DISABLE_BUNDLED_SKILLS": "1",
    "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_TELEMETRY": "1",
}
# Whatever the program would ask a smaller or larger model for, it asks the run's own.
_MODEL_VARIABLES = (
    "ANTHROPIC_SMALL_FAST_MODEL",
    "ANTHROPIC_DEFAULT_HAIKU_MODEL",
    "ANTHROPIC_DEFAULT_SONNET_MODEL",
    "ANTHROPIC_DEFAULT_OPUS_MODEL",
    "CLAUDE_CODE_SUBAGENT_MODEL",
)
_LONG_CONTEXT = "[1m]"  # the program's own mark behind a model's name; it sends a header instead


@dataclass(frozen=True)
class ClaudeCodeLimits:
    """When the agent has done enough."""

    turns: int = 80
    allowance: Allowance = field(default_factory=Allowance)
    sandbox: Limits = field(
        default_factory=lambda: Limits(memory_bytes=4 << 30, processes=512, open_files=4096, file_bytes=256 << 20)
    )


class ClaudeCodeRunner:
    """Executes a case with the real command line."""

    name = "claude_code"

    def __init__(self, client: ModelClient, sandbox: Sandbox, limits: ClaudeCodeLimits | None = None) -> None:
        self._client = client
        self._sandbox = sandbox
        self._limits = limits or ClaudeCodeLimits()

    def run(self, assignment: Assignment) -> Execution:
        if not assignment.model:
            raise StageFailed(Outcome.EXECUTOR_ERROR, "the claude_code runner needs a model; set executor_model")
        program, started = find_program(), time.monotonic()
        stage = _Stage(assignment, self._sandbox)
        call = _call(assignment)
        events = Events(assignment, stage.watch())
        with Gateway(self._client, call, stage.rewrite, self._limits.allowance) as gateway:
            command = stage.command(program, gateway, self._limits)
            finished = self._sandbox.run(command)
        events.read(finished.stdout)
        events.transcript.is_simulated = any(answer.simulated for answer in gateway.passed)
        seconds = time.monotonic() - started
        try:
            _refuse_failure(assignment, finished, gateway, events)
        except StageFailed as failure:
            events.transcript.issue(str(failure))
            execution = _execution(assignment, gateway, events, seconds, self._sandbox.tier)
            raise record.failed(failure, self.name, assignment, execution) from failure
        return _execution(assignment, gateway, events, seconds, self._sandbox.tier)


@functools.cache
def find_program() -> Path:
    """The command line in the installed claude-agent-sdk; raises Unavailable with the remedy."""
    found = importlib.util.find_spec("claude_agent_sdk")
    program = Path(found.origin).parent / "_bundled" / "claude" if found and found.origin else None
    if program is None or not program.is_file():
        raise Unavailable("the runner claude_code needs claude-agent-sdk; install skill-assay[claude-code]")
    return program


def _call(assignment: Assignment) -> Call:
    """Who asks, for limiter, budget and ledger; what is asked comes from the program."""
    return Call(
        params={"model": str(assignment.model).removesuffix(_LONG_CONTEXT), "max_tokens": 32_000},
        purpose=Purpose.EXECUTE,
        team=assignment.team,
        batch_id=assignment.batch_id,
        run_id=assignment.run_id,
        label=assignment.label,
        timeout_seconds=assignment.timeout_seconds,
        is_cancelled=assignment.is_cancelled,
    )


class _Stage:
    """The folders of one run, and what is put into them."""

    def __init__(self, assignment: Assignment, sandbox: Sandbox) -> None:
        self._assignment = assignment
        self._sandbox = sandbox
        self._home = _new(assignment.workspace.parent / "home")
        self._tmp = _new(assignment.workspace.parent / "tmp")
        place = sandbox.place
        self._places = Places(place(assignment.workspace, WORKSPACE), place(self._home, "/home/user"))
        self._skill_directory: str | None = None
        if assignment.skill:
            self._install(assignment.skill.folder, safe_name(assignment.skill.name))

    def _install(self, folder: Path, name: str) -> None:
        installed = self._home / ".claude" / "skills" / name
        installed.parent.mkdir(parents=True)
        Reader(folder).copy_to(installed)
        self._skill_directory = f"{self._places.home}/.claude/skills/{name}"

    def watch(self) -> SkillWatch:
        """Who notes which files of the skill are opened."""
        staged = staged_skill(self._assignment, self._skill_directory, self._places)
        return SkillWatch(staged, self._assignment.canary, self._assignment.other_canary)

    def rewrite(self, body: bytes) -> bytes:
        """The arm's own canary must not reach the model; the other one must not even be there."""
        canary, other = self._assignment.canary, self._assignment.other_canary
        if other and other.encode() in body:
            raise arms.contaminated("the other skill's canary is in a request to the model")
        return body.replace(f"<!-- {canary} -->".encode(), b"") if canary else body

    def command(self, program: Path, gateway: Gateway, limits: ClaudeCodeLimits) -> Command:
        """The program behind a forwarder, because it speaks TCP and the door is a socket file."""
        place = self._sandbox.place
        assignment = self._assignment
        env = {
            **_ENVIRONMENT,
            **dict.fromkeys(_MODEL_VARIABLES, str(assignment.model)),
            "ANTHROPIC_API_KEY": gateway.token,
            "CLAUDE_CODE_MAX_RETRIES": str(gateway.max_retries),
            "ASSAY_SOCKET": place(gateway.socket, _SOCKET),
        }
        return Command(
            argv=("python3", "-I", "-S", "-c", _forwarder(), place(program, _PROGRAM), *_arguments(assignment, limits)),
            workspace=assignment.workspace,
            mounts=(Mount(program, _PROGRAM), Mount(gateway.socket, _SOCKET)),
            env=env,
            stdin=task_message(assignment.prompt, assignment.inputs).encode("utf-8", "replace"),
            timeout_seconds=assignment.timeout_seconds,
            output_bytes=_MAX_EVENT_BYTES,
            merge_output=False,
            limits=limits.sandbox,
            home=self._home,
            tmp=self._tmp,
        )


def _arguments(assignment: Assignment, limits: ClaudeCodeLimits) -> Iterator[str]:
    yield from ("--print", "--output-format", "stream-json", "--verbose", "--model", str(assignment.model))
    yield from ("--max-turns", str(limits.turns), "--strict-mcp-config")
    # It runs in our sandbox: its own questions would have nobody to answer them.
    yield "--dangerously-skip-permissions"
    yield from ("--setting-sources", "user" if assignment.skill else "")


def _refuse_failure(assignment: Assignment, finished: Finished, gateway: Gateway, events: Events) -> None:
    """Raise what the run came to, unless it came to a good end."""
    if events.watch.saw_other:  # whatever the program made of a request that was refused
        raise arms.contaminated("a tool showed the other skill's canary")
    if finished.timed_out:
        words = f"the agent was not done after {assignment.timeout_seconds:.0f} s"
        raise StageFailed(Outcome.TIMEOUT, words)
    last = gateway.passed[-1].stop_reason if gateway.passed else ""
    if gateway.failure is not None and (events.has_failed or not events.has_ended):
        raise gateway.failure
    refuse_bad_end(last)
    if finished.stopped_by:
        raise StageFailed(Outcome.EXECUTOR_ERROR, f"the agent was stopped: {finished.stopped_by} limit")
    if events.has_failed or not events.has_ended:
        told = events.error or finished.stderr.decode("utf-8", "replace").strip()[-300:] or "no message"
        raise StageFailed(Outcome.EXECUTOR_ERROR, f"the agent ended without a result: {told}")


def _execution(assignment: Assignment, gateway: Gateway, events: Events, seconds: float, tier: str) -> Execution:
    tokens = gateway.tokens
    costs = [answer.cost_usd for answer in gateway.passed]
    return Execution(
        transcript=events.transcript.markdown(),
        transcript_events=events.transcript.json_lines(),
        metrics=Metrics(
            tool_calls=dict(events.counts),
            total_tool_calls=sum(events.counts.values()),
            total_steps=events.turns,
            errors_encountered=events.errors,
        ),
        seconds=seconds,
        user_notes=take_notes(assignment.workspace, assignment.inputs),
        usage=Usage(tokens.input, tokens.output, tokens.cache_read, tokens.cache_write),
        cost_usd=None if None in costs else sum(cost for cost in costs if cost is not None),
        model=gateway.passed[-1].model if gateway.passed else None,
        simulated=any(answer.simulated for answer in gateway.passed),
        skill_used=events.watch.used if assignment.skill else None,
        skill_files_read=events.watch.files_read if assignment.skill else (),
        sandbox_tier=tier,
        details={"program": events.program, "skills_listed": list(events.skills), "turns": events.turns},
    )


def _new(folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return folder


@functools.cache
def _forwarder() -> str:
    return resources.files("service.runners").joinpath("forwarder.py").read_text(encoding="utf-8")
