"""One contender, one measurement: speed, processor time, memory; or what a kill at half time costs."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from contender import Contender
from processes import Watch, mebibytes, wait_until
from simulators import Simulator
from work import EXECUTOR, JUDGE, Work

CALLS = "/v1/messages"


@dataclass
class Ready:
    """A contender in front of a simulator of its own."""

    contender: Contender
    simulator: Simulator
    work: Work

    def calls(self) -> int:
        """Model calls asked for so far."""
        return self.simulator.calls()


@contextmanager
def ready(make: Callable[[], Contender], work: Work) -> Iterator[Ready]:
    """Everything that must stand before the clock starts, and is taken down in any case."""
    with tempfile.TemporaryDirectory(prefix="assay-peers-", ignore_cleanup_errors=True) as name:
        contender = make()
        try:
            with Simulator(contender.script, work.latency) as simulator:
                contender.prepare(work, Path(name), simulator.url)
                simulator.reset()
                yield Ready(contender, simulator, work)
        finally:
            contender.remove()


def speed(make: Callable[[], Contender], work: Work, limit_seconds: float) -> dict[str, Any]:
    """Cases per second and what they cost.

    The clock of a program starts with its first call, so that its start-up is not charged; Assay's starts with the
    submit. Both end when the results are there.
    """
    with ready(make, work) as one, Watch(lambda: mebibytes(one.contender.pids())) as memory:
        simulator_before = one.simulator.cpu_seconds()
        asked, used_at_rest = time.monotonic(), one.contender.cpu_seconds()
        one.contender.launch()
        wait_until(lambda: one.calls() > 0 or one.contender.is_done(), limit_seconds, "the first call", 0.02)
        is_service = one.contender.name == "Assay"
        began = asked if is_service else time.monotonic()
        used_before = used_at_rest if is_service else one.contender.cpu_seconds()
        wait_until(one.contender.is_done, limit_seconds, f"{one.contender.name}: all cases")
        seconds = time.monotonic() - began
        used = one.contender.cpu_seconds() - used_before
        stats, said = one.simulator.stats(), one.contender.result()
        simulator_used = one.simulator.cpu_seconds() - simulator_before
    return {
        "seconds": round(seconds, 2),
        "start_up_seconds": round(began - asked, 2),
        "cases_per_second": round(work.cases / seconds, 1),
        "share_of_ideal": round(work.ideal_seconds / seconds, 3) if work.ideal_seconds else None,
        "cpu_ms_per_case": round(used / work.cases * 1000, 2),
        "peak_mib": round(memory.most),
        "simulator_cpu_ms_per_case": round(simulator_used / work.cases * 1000, 2),
        "calls": stats["by_path"].get(CALLS, 0),
        "peak_in_flight": stats["peak_in_flight"],
        **said,
    }


def killed(make: Callable[[], Contender], work: Work, limit_seconds: float) -> dict[str, Any]:
    """Kill everything when half of the calls are answered, go on, and count what was asked for again.

    Calls that were open when the kill came must be made again by anybody; they are no finished work.
    """
    with ready(make, work) as one:
        one.contender.launch()
        half = work.cases
        wait_until(lambda: one.simulator.stats()["answered"] >= half, limit_seconds, "half of the calls", 0.02)
        before = one.simulator.stats()
        one.contender.kill()
        wait_until(lambda: one.simulator.stats()["in_flight"] == 0, 60, "the dead connections to end")
        made = one.simulator.stats()
        began = time.monotonic()
        saved = one.contender.saved()
        one.contender.resume()
        wait_until(one.contender.is_done, limit_seconds, f"{one.contender.name}: all cases after the kill")
        seconds = time.monotonic() - began
        after, said = one.simulator.stats(), one.contender.result()
    return {
        **said,
        "answered_before_the_kill": before["answered"],
        "seconds_to_finish": round(seconds, 2),
        **reuse(work.cases, before, made, after),
        **(lost(work.cases, saved, made, after) if saved else {}),
    }


def reuse(cases: int, before: dict[str, Any], made: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """How much of what was answered before the kill did not have to be asked for again."""
    calls_after = after["by_path"][CALLS] - made["by_path"][CALLS]
    needed = 2 * cases - before["answered"]
    repeated = calls_after - needed
    return {
        "calls_after_the_kill": calls_after,
        "finished_calls_repeated": repeated,
        "share_reused": round(1 - repeated / before["answered"], 4),
    }


def lost(cases: int, saved: dict[str, int], made: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Whether anything was asked for again whose result had been saved: 0 is the promise."""

    def calls(model: str) -> int:
        return int(after["by_model"].get(model, 0) - made["by_model"].get(model, 0))

    return {
        "saved": saved,
        "saved_executions_repeated": calls(EXECUTOR) - (cases - saved["executions"]),
        "saved_judgements_repeated": calls(JUDGE) - (cases - saved["settled"]),
    }
