"""What structural checks cost: python bench/checks.py [files|pool|sandbox]... prints Markdown tables."""

import functools
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import psutil
from pydantic import JsonValue

from schemas.suite import Case, StructuralExpectation
from service.checks import Tools, check
from service.checks.engine import Engine
from service.errors import Unavailable
from service.sandbox import Command, Sandbox, bash, open_sandbox
from service.sandbox.opening import Tier
from service.sandbox.reader import Reader
from service.sandbox.scratch import scratch

ROUNDS = 5
LINE = "const value = compute(input) // nothing special on this line\n"
CHECKS: dict[str, dict[str, JsonValue]] = {
    "file_exists": {"pattern": "*.ts"},
    "file_count": {"pattern": "src/**/*.ts", "count": 1},
    "file_contains": {"pattern": "*.ts", "match": "not in any file"},
    "file_contains (regex)": {"pattern": "*.ts", "match_regex": r"not in \w+ file"},
    "file_not_contains": {"pattern": "*.ts", "match_any": ["jest.mock", "sinon"]},
    "file_not_contains (regex)": {"pattern": "*.ts", "match_regex": r"jest\.\w+"},
}


def fill(folder: Path, files: int) -> None:
    """A tree of small sources, a hundred to a folder."""
    for number in range(files):
        path = folder / "src" / f"d{number // 100}" / f"f{number}.{'ts' if number % 2 else 'md'}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(LINE * 20)


def no_sandbox() -> Sandbox:
    """These checks have no scripts."""
    raise Unavailable("no scripts here")


def case(*types: str) -> Case:
    """A case with some of the checks above."""
    expectations = [
        StructuralExpectation(id=f"S{number}", type=name.partition(" ")[0], params=CHECKS[name])
        for number, name in enumerate(types, 1)
    ]
    return Case(id=1, prompt="p", structural=tuple(expectations))


def milliseconds(
    work: Callable[[], object], rounds: int = ROUNDS, clock: Callable[[], float] = time.perf_counter
) -> float:
    """The best of some rounds: what the work costs when nobody else is at work."""
    times = []
    for _ in range(rounds):
        started = clock()
        work()
        times.append((clock() - started) * 1000)
    return min(times)


def processor_time() -> float:
    """Seconds of processor time of this process and its children, so that a busy machine does not matter."""
    us = psutil.Process()
    return sum(sum(process.cpu_times()[:2]) for process in (us, *us.children()))


def works(folder: Path, tools: Tools) -> dict[str, Callable[[], object]]:
    """What is timed on one tree: plain ways first, then ours."""

    def checked(*types: str) -> Callable[[], object]:
        return lambda: check(case(*types), Reader(folder), None, None, tools)

    return {
        "plain `Path.rglob` + `is_file`": lambda: [path for path in folder.rglob("*.ts") if path.is_file()],
        "plain `rglob` + `read_text` + `in`": lambda: any("x!" in path.read_text() for path in folder.rglob("*.ts")),
        "safe listing": lambda: Reader(folder).listing,
        **{f"`{type_}`": checked(type_) for type_ in CHECKS},
        "all six in one case": checked(*CHECKS),
    }


def _cost(work: Callable[[], object], size: int) -> float:
    """Milliseconds of processor time; the clock ticks in hundredths, so small trees are done many times over."""
    times = 20_000 // size
    return milliseconds(lambda: [work() for _ in range(times)], 5, processor_time) / times


def bench_files() -> None:
    """Cost per check and per file, beside a plain Path.rglob."""
    sizes = (100, 1_000, 10_000)
    rows: dict[str, list[float]] = {}
    with Engine() as engine:
        for size in sizes:
            with tempfile.TemporaryDirectory() as name:
                fill(Path(name), size)
                for label, work in works(Path(name), Tools(engine, no_sandbox)).items():
                    rows.setdefault(label, []).append(_cost(work, size))
    print(
        "| ms of processor time (best of 5) | "
        + " | ".join(f"{size:,} files" for size in sizes)
        + " | µs per file at 10,000 |"
    )
    print("|---|" + "---|" * (len(sizes) + 1))
    for label, times in rows.items():
        shown = " | ".join(f"{one:.1f}" for one in times)
        print(f"| {label} | {shown} | {times[-1] * 1000 / sizes[-1]:.1f} |")


def check_for(seconds: float) -> int:
    """How many checks one process decides in so many seconds: six on twenty files at a time."""
    done = 0
    with tempfile.TemporaryDirectory() as name, Engine() as engine:
        fill(Path(name), 20)
        one = case(*CHECKS)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            done += len(check(one, Reader(Path(name)), None, None, Tools(engine, no_sandbox)).expectations)
    return done


def bench_pool() -> None:
    """Checks per second with one and two processes, in turn."""
    seconds, best = 2.0, {1: 0.0, 2: 0.0}
    for _ in range(5):
        for processes in best:
            with ProcessPoolExecutor(processes) as pool:
                done = sum(pool.map(check_for, [seconds] * processes))
            best[processes] = max(best[processes], done / seconds)
    print("| processes | checks per second (best of 5) |")
    print("|---|---|")
    for processes, rate in best.items():
        print(f"| {processes} | {rate:,.0f} |")


def bench_sandbox() -> None:
    """What one command costs in each tier, and one script as a check."""
    print("| one `bash -c true` | ms (best of 50) |")
    print("|---|---|")
    with scratch() as folder:
        workspace = folder / "workspace"
        workspace.mkdir(mode=0o700)
        command = Command(bash("true"), workspace)
        tiers: tuple[Tier, ...] = ("bwrap", "landlock", "none")
        for tier in tiers:
            box = open_sandbox(tier)
            print(f"| {tier} | {milliseconds(functools.partial(box.run, command), 50):.1f} |")
        fill(workspace, 10_000)
        box = open_sandbox("bwrap")
        print(f"| bwrap, 10,000 files in the workspace | {milliseconds(lambda: box.run(command), 5):.1f} |")


if __name__ == "__main__":
    benches = {"files": bench_files, "pool": bench_pool, "sandbox": bench_sandbox}
    for wanted in sys.argv[1:] or list(benches):
        benches[wanted]()
        print()
