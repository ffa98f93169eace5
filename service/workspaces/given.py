"""A benchmark.json that was already in the folder: kept as given, and compared with what the runs really say."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import JsonValue

from service.aggregation.benchmark import Aggregates
from service.errors import BadInput
from service.workspaces.reading import Workspace

GIVEN = "benchmark.given.json"
MOST_BYTES = 200 * 2**20
TOLERANCE = 0.005  # other tools write two decimals


@dataclass(frozen=True, slots=True)
class Given:
    """What another tool, or an earlier aggregation, said."""

    metadata: dict[str, JsonValue]
    run_summary: dict[str, JsonValue]

    @property
    def is_ours(self) -> bool:
        """Whether Assay wrote it."""
        provenance = self.metadata.get("provenance")
        return isinstance(provenance, dict) and "assay_version" in provenance


def read_given(workspace: Workspace) -> Given | None:
    """The benchmark.json of the folder; None when there is none we can read."""
    try:
        data = workspace.folder.bytes_of(workspace.layout.root / "benchmark.json", MOST_BYTES)
        if data is None:
            return None
        found = json.loads(data)
    except (BadInput, ValueError, RecursionError):
        workspace.remark("the benchmark.json that was here cannot be read; it is kept and not compared")
        return Given({}, {})
    return Given(_object(found, "metadata"), _object(found, "run_summary"))


def _object(value: object, name: str) -> dict[str, JsonValue]:
    inner = value.get(name) if isinstance(value, dict) else None
    return inner if isinstance(inner, dict) else {}


def keep_given(path: Path, copy: Path) -> None:
    """Move somebody's benchmark.json aside, unless one is kept already."""
    if path.is_file() and not copy.exists():
        path.rename(copy)


def mismatches(given: Given | None, found: Aggregates) -> Iterator[str]:
    """Where the given summary says something else than the runs."""
    if given is None or given.is_ours:
        return
    ours = found.run_summary
    for name in (name for name in ours if name != "delta"):
        theirs, here = _pass_rate(given.run_summary.get(name)), _pass_rate(ours[name])
        if theirs is not None and here is not None and abs(theirs - here) > TOLERANCE:
            yield f"{GIVEN} says {name} has a mean pass rate of {theirs:g}; its runs give {here:g}"
    theirs_delta, our_delta = _delta(given.run_summary), _delta(ours)
    if theirs_delta and our_delta and theirs_delta != our_delta:
        yield f"{GIVEN} says the pass rates differ by {theirs_delta}; treatment minus control is {our_delta}"


def _pass_rate(summary: JsonValue) -> float | None:
    rate = summary.get("pass_rate") if isinstance(summary, dict) else None
    mean = rate.get("mean") if isinstance(rate, dict) else None
    return mean if isinstance(mean, int | float) else None


def _delta(run_summary: dict[str, JsonValue]) -> str | None:
    delta = run_summary.get("delta")
    value = delta.get("pass_rate") if isinstance(delta, dict) else None
    return value if isinstance(value, str) else None
