"""Checks that run a script: on a copy of the outputs, in the sandbox."""

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from schemas.base import Number
from schemas.checks import CommandSucceeds, CustomScript
from service.checks.evidence import excerpt
from service.checks.verdict import Given, Outputs, Undecided, Verdict
from service.sandbox.port import WORKSPACE, Command, Finished, Sandbox, bash
from service.sandbox.scratch import scratch

_OUTPUT_BYTES = 100_000


class Scripts:
    """Runs the scripts of one case; scripts that may only read share one copy, one that writes gets its own."""

    def __init__(self, outputs: Outputs, open_sandbox: Callable[[], Sandbox], work: Path | None = None) -> None:
        self._outputs = outputs
        self._open_sandbox = open_sandbox
        self._work = work
        self._stack = ExitStack()
        self._shared: Path | None = None
        self.tier: str | None = None  # of the sandbox, once a script ran

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def run(self, script: str, timeout_seconds: float, writable: bool) -> Finished:
        """Run one script in a copy of the outputs; raises Unavailable when it cannot be run as it must."""
        sandbox = self._open_sandbox()
        if writable:
            with ExitStack() as stack:
                return self._run(sandbox, self._copy(stack), script, timeout_seconds, writable)
        if self._shared is None:
            self._shared = self._copy(self._stack)
        return self._run(sandbox, self._shared, script, timeout_seconds, writable)

    def _copy(self, stack: ExitStack) -> Path:
        copy = stack.enter_context(scratch(self._work)) / "outputs"
        self._outputs.copy_to(copy)
        copy.chmod(0o700)
        return copy

    def _run(self, sandbox: Sandbox, copy: Path, script: str, timeout_seconds: float, writable: bool) -> Finished:
        self.tier = sandbox.tier
        return sandbox.run(
            Command(
                bash(script),
                copy,
                writable=writable,
                env={"OUTPUTS_DIR": sandbox.place(copy, WORKSPACE)},
                timeout_seconds=timeout_seconds,
                output_bytes=_OUTPUT_BYTES,
                merge_output=False,
            )
        )


def custom_script(fields: CustomScript, given: Given) -> Verdict:
    """A bash script exits with 0."""
    return _verdict(fields.script, fields.timeout_seconds, fields.writable, given)


def command_succeeds(fields: CommandSucceeds, given: Given) -> Verdict:
    """The same under another name."""
    return _verdict(fields.command, fields.timeout_seconds, fields.writable, given)


def _verdict(script: str, seconds: Number, writable: bool, given: Given) -> Verdict:
    left = given.seconds_left()
    finished = given.scripts.run(script, min(float(seconds), left), writable)
    if finished.timed_out and left < seconds:
        raise Undecided(f"the time for this case's checks ended {left:.0f} s after the script began")
    if finished.timed_out:
        return Verdict(False, f"Script timed out after {seconds:g}s")
    if finished.stopped_by:
        return Verdict(False, f"Script ended because it wrote too much ({finished.stopped_by})")
    said = excerpt((finished.stdout.strip() or finished.stderr.strip()).decode("utf-8", "replace"), 200)
    return Verdict(finished.exit_code == 0, f"Script exit code {finished.exit_code}" + (f": {said}" if said else ""))
