"""regrade.json: what a regrade decides differently, old beside new."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from schemas.base import CaseId
from schemas.states import Outcome
from service.aggregation.records import COUNTED, CaseFacts, Options, RunRecord
from service.aggregation.scores import score
from service.judging.regrading import changes

# So that a regrade that turns everything round still makes a file that people can open.
MOST_RUNS = 10_000
_METRICS = ("pass_rate", "rubric_normalized", "overall_efficiency")

Json = dict[str, Any]
# A case's id with its type, the configuration and the run number: what a run keeps from one batch to the next.
Key = tuple[type, CaseId, str, int]


def key_of(run: RunRecord) -> Key:
    """What a run has in common with its regrade."""
    return type(run.case.id), run.case.id, run.configuration, run.run_number


def case_key(case: CaseFacts) -> tuple[type, CaseId]:
    """1 and "1" are different cases."""
    return type(case.id), case.id


def regrade_document(old_id: str, summaries: tuple[Json, Json], pairs: Iterator[tuple[RunRecord, RunRecord]]) -> Json:
    """The document; `summaries` are the run_summary of old and new, `pairs` every run as it was and as it is."""
    differing: list[Json] = []
    compared = different = 0
    for old, new in pairs:
        compared += 1
        if entry := _difference(old, new):
            different += 1
            if len(differing) < MOST_RUNS:
                differing.append(entry)
    return {
        "regrade_of": old_id,
        "compared_runs": compared,
        "different_runs": different,
        "configurations": _figures(*summaries),
        "runs": differing,
    }


def _figures(old: Json, new: Json) -> Json:
    names = dict.fromkeys([*new, *old])
    return {name: {"old": _means(old.get(name)), "new": _means(new.get(name))} for name in names if name != "delta"}


def _means(summary: Any) -> Json | None:
    if not isinstance(summary, dict):
        return None
    found = {name: summary.get(name) for name in _METRICS}
    return {name: value["mean"] for name, value in found.items() if isinstance(value, dict)}


def _difference(old: RunRecord, new: RunRecord) -> Json | None:
    """What is decided differently about a run; None when nothing is."""
    found = [asdict(change) for change in changes(old.grading, new.grading, old.structural, new.structural)]
    if not found and old.outcome is new.outcome:
        return None
    return {
        "case": new.case.id,
        "configuration": new.configuration,
        "run_number": new.run_number,
        "old": _ended(old),
        "new": _ended(new),
        "changes": found,
    }


def _ended(run: RunRecord) -> Json:
    rate = score(run, Options()).pass_rate if run.outcome in COUNTED else None
    reason = run.reason if run.outcome is not Outcome.SCORED else None
    return {"outcome": run.outcome.value, "pass_rate": None if rate is None else round(rate, 4), "reason": reason}
