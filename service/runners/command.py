"""Runs any program as the agent: prompt on stdin and in a file, everything else in environment variables.

The program's working folder is the run's workspace. It finds there the case's input files, and what it leaves there
is the run's output. It gets

    ASSAY_PROMPT_FILE    the prompt, also on stdin
    ASSAY_SKILL_DIR      the skill's folder; unset in an arm without a skill
    ASSAY_INPUT_FILES    the names of the input files, one a line
    ASSAY_MODEL          the executor model, if one is set
    ASSAY_RESULT_FILE    may be written: a JSON object with `transcript`, `usage`, `tool_calls`, `cost_usd`, ...
    ASSAY_BATCH, ASSAY_CASE, ASSAY_CONFIGURATION, ASSAY_RUN   which run this is

and nothing else of the worker's environment. The same JSON object may instead be the last line of its output.
"""

import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from schemas.metrics import Metrics
from schemas.states import Outcome
from service.errors import BadInput, StageFailed
from service.models.clean_text import clean
from service.runners import record
from service.runners.port import Assignment, Execution, Usage
from service.runners.transcript import SIMULATED
from service.sandbox.port import WORKSPACE, Command, Finished, Mount, Sandbox

RESULT_FILE = ".assay-result.json"
_MAX_RESULT_BYTES = 1 << 20
_KERNEL = ("/proc", "/sys", "/dev")
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", *_KERNEL)  # every command has these, or its own
_MAX_COUNT = 10**12
_MAX_COST = 1e6
_MAX_NAME, _MAX_NAMES = 200, 200
_KINDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


class CommandRunner:
    """The runner `command`."""

    name = "command"

    def __init__(self, sandbox: Sandbox, network: bool = False, closed: Sequence[Path] = ()) -> None:
        """`closed` are folders of which no file is shown to any command."""
        self._sandbox = sandbox
        self._network = network
        self._closed = [folder.resolve() for folder in closed]

    def run(self, assignment: Assignment) -> Execution:
        if not assignment.command:
            raise BadInput("the command runner needs a program; set ASSAY_COMMAND or pass --command")
        finished = self._sandbox.run(self._command(assignment))
        words = finished.output.decode("utf-8", "replace")
        result = _take_result(assignment.workspace, words)
        transcript = _transcript(assignment, words, result)
        execution = _execution(finished, transcript, result, self._sandbox.tier)
        try:
            _refuse_failure(finished, words)
        except StageFailed as failure:
            raise record.failed(failure, self.name, assignment, execution) from failure
        return execution

    def _command(self, assignment: Assignment) -> Command:
        prompt_file = assignment.workspace.parent / "prompt.md"
        prompt_file.write_text(clean(assignment.prompt), encoding="utf-8")
        mounts = [Mount(prompt_file, "/assay/prompt.md"), *self._programs(assignment.command)]
        if assignment.skill:
            mounts.append(Mount(assignment.skill.folder, "/assay/skill"))
        return Command(
            argv=assignment.command,
            workspace=assignment.workspace,
            mounts=tuple(mounts),
            env=self._environment(assignment, prompt_file),
            stdin=assignment.prompt.encode("utf-8", "replace"),
            timeout_seconds=assignment.timeout_seconds,
            network=self._network,
        )

    def _programs(self, argv: tuple[str, ...]) -> list[Mount]:
        """The files that the command line names, shown at the same place."""
        named = named_files(argv)
        for inside, host in named.items():
            if any(host.is_relative_to(folder) for folder in self._closed):
                words = f"the command names {inside}, which belongs to this installation; keep programs elsewhere"
                raise StageFailed(Outcome.EXECUTOR_ERROR, words)
        return [Mount(host, inside) for inside, host in named.items()]

    def _environment(self, assignment: Assignment, prompt_file: Path) -> dict[str, str]:
        place = self._sandbox.place
        given = {
            "ASSAY_PROMPT_FILE": place(prompt_file, "/assay/prompt.md"),
            "ASSAY_RESULT_FILE": place(assignment.workspace / RESULT_FILE, f"{WORKSPACE}/{RESULT_FILE}"),
            "ASSAY_INPUT_FILES": "\n".join(assignment.inputs),
            "ASSAY_BATCH": assignment.batch_id,
            "ASSAY_CASE": str(assignment.case_id),
            "ASSAY_CONFIGURATION": assignment.configuration,
            "ASSAY_RUN": str(assignment.run_number),
        }
        if assignment.skill:
            given["ASSAY_SKILL_DIR"] = place(assignment.skill.folder, "/assay/skill")
        if assignment.model:
            given["ASSAY_MODEL"] = assignment.model
        return given


def named_files(argv: Sequence[str]) -> dict[str, Path]:
    """Regular files of the host that the command line names by their full path: name -> the real file.

    What a command has anyway, or has its own of, is not among them.
    """
    wanted = [part for part in argv if part.startswith("/") and not any(map(Path(part).is_relative_to, _SYSTEM))]
    return {part: real for part in wanted if (real := _regular(part)) is not None}


def _regular(name: str) -> Path | None:
    try:
        real = Path(name).resolve(strict=True)
        return real if real.is_file() and not any(map(real.is_relative_to, _KERNEL)) else None
    except (OSError, RuntimeError, ValueError):  # too long for a name, closed to us, a circle of links
        return None


def _take_result(workspace: Path, words: str) -> dict[str, Any]:
    """What the program says about itself, from its file or its last line; the file is no output."""
    path = workspace / RESULT_FILE
    text = ""
    if path.is_file() and not path.is_symlink():
        text = path.read_text(encoding="utf-8", errors="replace") if path.stat().st_size <= _MAX_RESULT_BYTES else ""
        path.unlink()
    elif words.rstrip().endswith("}"):
        text = words.rstrip().rsplit("\n", 1)[-1]
    try:
        result = clean(json.loads(text, parse_constant=_no_number))
    except (ValueError, RecursionError):
        return {}
    return result if isinstance(result, dict) else {}


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number")


def _text(value: Any, most: int) -> str | None:
    """Words that can be kept: no NUL, no flood."""
    return value[:most].replace("\0", "\ufffd") if isinstance(value, str) else None


def _transcript(assignment: Assignment, words: str, result: Mapping[str, Any]) -> str:
    told = _text(result.get("transcript"), _MAX_RESULT_BYTES)
    body = words if told is None else told
    model = f"## Model\n\n{SIMULATED}\n\n" if result.get("simulated") is True else ""
    return str(clean(f"## Eval Prompt\n\n{assignment.prompt}\n\n{model}## Execution\n\n{body.strip()}\n"))


def _refuse_failure(finished: Finished, words: str) -> None:
    if finished.timed_out:
        raise StageFailed(Outcome.TIMEOUT, f"the command was stopped after {finished.seconds:.0f} s")
    if finished.stopped_by:
        raise StageFailed(Outcome.EXECUTOR_ERROR, f"the command was stopped: {finished.stopped_by} limit")
    if finished.exit_code:
        last = words.strip().rsplit("\n", 1)[-1][:200]
        raise StageFailed(Outcome.EXECUTOR_ERROR, f"the command ended with code {finished.exit_code}: {last}")


def _execution(finished: Finished, transcript: str, result: Mapping[str, Any], tier: str) -> Execution:
    tools = _counts(result.get("tool_calls"))
    usage = _counts(result.get("usage"))
    return Execution(
        transcript=transcript,
        metrics=Metrics(
            tool_calls=tools,
            total_tool_calls=sum(tools.values()),
            total_steps=_count(result.get("total_steps")) or 1,
            errors_encountered=_count(result.get("errors_encountered")) or 0,
        ),
        seconds=finished.seconds,
        usage=Usage(**{kind: usage.get(kind) for kind in _KINDS}),
        cost_usd=_cost(result.get("cost_usd")),
        model=_text(result.get("model"), _MAX_NAME),
        simulated=result.get("simulated") is True,
        skill_used=result["skill_used"] if isinstance(result.get("skill_used"), bool) else None,
        sandbox_tier=tier,
    )


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_COUNT else None


def _cost(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= _MAX_COST else None  # infinity is more, nan is neither


def _counts(value: Any) -> dict[str, int]:
    entries = value.items() if isinstance(value, dict) else ()
    counted = {str(_text(name, _MAX_NAME)): count for name, raw in entries if (count := _count(raw)) is not None}
    return dict(itertools.islice(counted.items(), _MAX_NAMES))
