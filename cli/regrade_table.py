"""regrade.json on a terminal: figures and decisions, old beside new."""

from collections.abc import Iterator
from typing import Any

from cli.aggregate import printable

REGRADE = "regrade.json"
MOST_LINES = 20
_WIDTH = 60


def regrade_table(document: dict[str, Any]) -> Iterator[str]:
    """The lines of the table: per configuration the figures, per run what is decided differently."""
    yield f"{document['different_runs']} of {document['compared_runs']} runs are decided differently than in batch " + (
        str(document["regrade_of"])
    )
    yield f"  {'configuration':<16} {'metric':<20} {'old':>8} {'new':>8}"
    for name, both in document["configurations"].items():
        for metric in dict.fromkeys([*(both["new"] or {}), *(both["old"] or {})]):
            old, new = ((both[side] or {}).get(metric) for side in ("old", "new"))
            yield f"  {printable(name):<16} {metric:<20} {_figure(old):>8} {_figure(new):>8}"
    lines = list(_changes(document["runs"]))
    yield from lines[:MOST_LINES]
    if len(lines) > MOST_LINES:
        yield f"  ... and {len(lines) - MOST_LINES} more, listed in {REGRADE}"
    if any(_was_asked_along(run["changes"]) for run in document["runs"]):
        yield "  a changed case is judged as a whole: its other statements were asked again, and a judge is not steady"


def _was_asked_along(changes: list[dict[str, Any]]) -> bool:
    """Whether something new or gone stands beside something that was asked both times and is decided differently."""
    is_other = {change["old"] is None or change["new"] is None for change in changes}
    return len(is_other) == 2


def _changes(runs: list[dict[str, Any]]) -> Iterator[str]:
    for run in runs:
        place = printable(f"{run['case']}/{run['configuration']}/{run['run_number']}")
        old, new = run["old"]["outcome"], run["new"]["outcome"]
        if old != new:
            yield f"  {place}: {old} -> {new}"
        for change in run["changes"]:
            yield f"  {place}: {_decision(change['old'])} -> {_decision(change['new'])}: {_short(change['what'])}"


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"


def _decision(value: bool | float | None) -> str:
    if isinstance(value, bool):
        return "passed" if value else "failed"
    return "not asked" if value is None else f"{value:g}"


def _short(text: str) -> str:
    text = printable(text)
    return text if len(text) <= _WIDTH else text[: _WIDTH - 3] + "..."
