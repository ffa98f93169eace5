"""The same work for Assay, Inspect AI and promptfoo, against the same simulator, in turns.

    python bench/peers [--cases 1000,2000] [--latency 0 1.0] [--concurrency 100 400] [--repeats 3] [--environments DIR]

Each case is one executor call and one judge call. Every measurement has a simulator of its own in a process of its
own; its processor time is told apart. Share of the ideal = cases x 2 x latency / concurrency / seconds. The peers are
installed into throw-away environments (kept and used again with --environments). Takes about 40 minutes in full.
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from assay import Assay
from contender import Contender
from environments import inspect_programs, promptfoo_program, versions
from inspectai import InspectAi
from measuring import killed, speed
from promptfoo import Promptfoo
from results import save
from work import Work

from service import log

Makers = dict[str, Callable[[], Contender]]
# What Assay is held to at 1.0 s and 400 calls at once.
GOALS = {"share_of_ideal": 0.70, "times_promptfoo": 1.2, "times_inspect": 2.5, "cpu_ms_per_case": 10.0}


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", default="1000,2000", help="with the least and with the most concurrency")
    parser.add_argument("--latency", nargs="+", default=["0", "1.0"], help="seconds, or least,most")
    parser.add_argument("--concurrency", nargs="+", type=int, default=[100, 400])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", nargs="+", help="assay, inspect, inspect-tuned, promptfoo")
    parser.add_argument("--no-kill", action="store_true", help="leave out the kill at half time")
    parser.add_argument("--no-speed", action="store_true", help="only the kill at half time")
    parser.add_argument("--limit-seconds", type=float, default=600.0, help="of one measurement")
    parser.add_argument("--environments", type=Path, help="where the peers are installed; a temporary folder if unset")
    parser.add_argument("--name", default="peers", help="of the file with the figures")
    return parser.parse_args()


def makers(folder: Path, only: list[str] | None) -> Makers:
    """How a fresh contender of each kind is made; what is not asked for is not installed."""
    known: dict[str, Callable[[], Callable[[], Contender]]] = {
        "assay": lambda: Assay,
        "promptfoo": lambda: partial(Promptfoo, promptfoo_program(folder)),
        "inspect": lambda: partial(InspectAi, inspect_programs(folder)),
        "inspect-tuned": lambda: partial(InspectAi, inspect_programs(folder), is_tuned=True),
    }
    unknown = sorted(set(only or ()) - set(known))
    if unknown:
        sys.exit(f"peers: there is no contender {unknown[0]!r}; known are {', '.join(known)}")
    return {name: install() for name, install in known.items() if not only or name in only}


def works(asked: argparse.Namespace) -> Iterator[Work]:
    """Every latency with every concurrency."""
    sizes = [int(size) for size in asked.cases.split(",")]
    for concurrency in asked.concurrency:
        for latency in asked.latency:
            cases = sizes[-1] if concurrency == max(asked.concurrency) else sizes[0]
            yield Work(cases, latency, concurrency)


def measured(what: Callable[..., dict[str, Any]], make: Callable[[], Contender], work: Work, limit: float) -> Any:
    """One measurement; one that fails is told and kept as a failure, and the others go on."""
    try:
        return what(make, work, limit)
    except (RuntimeError, TimeoutError, OSError, AssertionError, KeyError, ValueError) as error:
        print(f"    failed: {error}", flush=True)
        return {"failed": f"{type(error).__name__}: {error}"[:500]}


def all_speeds(made: Makers, asked: argparse.Namespace) -> list[dict[str, Any]]:
    """In turns: first all contenders once, then all again."""
    found = []
    for work in works(asked):
        for repeat in range(asked.repeats):
            for name, make in made.items():
                figures = measured(speed, make, work, asked.limit_seconds)
                row = {"contender": name, **vars(work), "repeat": repeat, **figures}
                found.append(row)
                print(f"  {line(row)}", flush=True)
    return found


def all_kills(made: Makers, asked: argparse.Namespace) -> list[dict[str, Any]]:
    """With the longest latency and the least concurrency: enough is open, and enough is finished."""
    latency = max(asked.latency, key=lambda text: float(text.split(",")[-1]))
    work = Work(int(asked.cases.split(",")[0]), latency, min(asked.concurrency))
    found = []
    for repeat in range(asked.repeats):
        for name, make in made.items():
            row = {"contender": name, **vars(work), "repeat": repeat}
            row |= measured(killed, make, work, asked.limit_seconds)
            found.append(row)
            told = {key: row[key] for key in row if "repeated" in key or key in ("share_reused", "scored", "failed")}
            print(f"  kill {name:14} {told}", flush=True)
    return found


def line(row: dict[str, Any]) -> str:
    if "failed" in row:
        return f"{row['contender']:14} failed"
    share = f"{row['share_of_ideal']:.2f} of ideal" if row["share_of_ideal"] else "-"
    return (
        f"{row['contender']:14} {row['latency']} s x {row['concurrency']}: {row['cases_per_second']:.0f} cases/s, "
        f"{share}, {row['cpu_ms_per_case']:.1f} ms CPU/case, {row['peak_mib']} MiB, "
        f"{row['scored']}/{row['cases']} scored, {row['calls']} calls"
    )


def summary(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The median of the repeats."""
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in rows:
        groups.setdefault((row["latency"], row["concurrency"], row["contender"]), []).append(row)
    return [_middle(key, [row for row in group if "failed" not in row]) for key, group in groups.items()]


def _middle(key: tuple[Any, ...], rows: list[dict[str, Any]]) -> dict[str, Any]:
    names = ("cases_per_second", "share_of_ideal", "cpu_ms_per_case", "peak_mib", "start_up_seconds")
    names += ("simulator_cpu_ms_per_case",)
    told: dict[str, Any] = dict(zip(("latency", "concurrency", "contender"), key, strict=True))
    for name in names:
        values = [row[name] for row in rows if row[name] is not None]
        told[name] = round(statistics.median(values), 3) if values else None
    return {**told, "measured": len(rows)}


def goals(rows: list[dict[str, Any]], kills: list[dict[str, Any]]) -> dict[str, Any]:
    """What Assay is held to, and what it came to; None where it was not measured."""
    hard = {row["contender"]: row for row in rows if (row["latency"], row["concurrency"]) == ("1.0", 400)}
    rate = {name: row["cases_per_second"] for name, row in hard.items() if row["cases_per_second"]}
    own = hard.get("assay", {})
    reached = {
        "share_of_ideal": own.get("share_of_ideal"),
        "times_promptfoo": _ratio(rate, "promptfoo"),
        "times_inspect": _ratio(rate, "inspect"),
        "cpu_ms_per_case": own.get("cpu_ms_per_case"),
    }
    mine = [row for row in kills if row["contender"] == "assay" and "failed" not in row]
    lost = sum(max(0, row[name]) for row in mine for name in ("saved_executions_repeated", "saved_judgements_repeated"))
    return {
        "goals": {**GOALS, "saved_work_repeated": 0},
        "reached": {**reached, "saved_work_repeated": lost if mine else None},
    }


def _ratio(rate: dict[str, float], other: str) -> float | None:
    return round(rate["assay"] / rate[other], 2) if {"assay", other} <= set(rate) else None


def main() -> None:
    """Measure, print, keep."""
    asked = options()
    log.configure("error", "text")
    with tempfile.TemporaryDirectory(prefix="assay-environments-") as name:
        folder = asked.environments or Path(name)
        made = makers(folder, asked.only)
        rows = [] if asked.no_speed else all_speeds(made, asked)
        kills = [] if asked.no_kill else all_kills(made, asked)
        found = {"versions": versions(folder)} if not asked.only else {}
    middle = summary(rows)
    notes = {"assay": Assay.notes, "promptfoo": Promptfoo.notes, "inspect": InspectAi.notes}
    save(asked.name, {**found, **goals(middle, kills), "summary": middle, "kills": kills, "runs": rows, "notes": notes})


if __name__ == "__main__":
    main()
