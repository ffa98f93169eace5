"""benchmark.json from a stream of runs: only tallies stay in memory, the runs themselves pass through a spool."""

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib.metadata import version
from tempfile import SpooledTemporaryFile
from typing import IO

from pydantic import JsonValue

from service.aggregation.coverage import coverage
from service.aggregation.document import item_document, statistics_document
from service.aggregation.feedback import FeedbackTally, feedback_document
from service.aggregation.figures import rounded
from service.aggregation.items import Item, case_items, dimension_item, flagged
from service.aggregation.moments import Moments
from service.aggregation.notes import notes
from service.aggregation.records import COUNTED, BatchPlan, RunRecord
from service.aggregation.runs import counted_run, uncounted_run
from service.aggregation.scores import RunScores, score
from service.aggregation.statistics import Statistics, missing_runs, statistics
from service.aggregation.summary import run_summary
from service.aggregation.tallies import CaseTally, Tallies
from service.aggregation.words import label, verdict_sentence

SPOOL_BYTES = 8 * 2**20  # runs beyond this wait on disk, not in memory
MOST_WARNINGS = 200

Json = dict[str, JsonValue]


def encoded(value: JsonValue, *, indent: int | None = None) -> bytes:
    """JSON bytes; text that is no Unicode (half a surrogate pair) is escaped rather than refused."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, allow_nan=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value, indent=indent, allow_nan=False).encode()


class Spool:
    """A JSON array in the making, on disk once it is large."""

    def __init__(self) -> None:
        self._file: IO[bytes] = SpooledTemporaryFile(max_size=SPOOL_BYTES)  # noqa: SIM115 - closed by close()
        self.count = 0

    def add(self, entry: Json) -> None:
        """Append one entry on its own line."""
        self._file.write(b",\n    " if self.count else b"\n    ")
        self._file.write(encoded(entry))
        self.count += 1

    def copy_to(self, out: IO[bytes]) -> None:
        """Write the whole array."""
        out.write(b"[")
        self._file.seek(0)
        shutil.copyfileobj(self._file, out)
        self._file.seek(0, 2)
        out.write(b"\n  ]" if self.count else b"]")

    def close(self) -> None:
        """Let go of the disk."""
        self._file.close()

    def __del__(self) -> None:
        # An aggregate that is only looked at is never written, and nobody thinks of closing it.
        self._file.close()


@dataclass(frozen=True, slots=True)
class Aggregates:
    """A batch, aggregated; the large arrays are still in their spools until written."""

    plan: BatchPlan
    tallies: Tallies
    statistics: Statistics
    items: list[Item]
    notes: list[str]
    warnings: list[str]
    coverage: Json
    suggestions: FeedbackTally
    runs: Spool
    uncounted: Spool
    extra_notes: list[str] = field(default_factory=list)  # an analyst's, after the rules'

    @property
    def verdict(self) -> str:
        """helps, hurts, no meaningful difference, inconclusive or no comparison."""
        return label(self.statistics)

    @property
    def verdict_sentence(self) -> str:
        """The verdict in words."""
        return verdict_sentence(self.statistics, self.tallies)

    @property
    def missing_runs(self) -> int:
        """Runs of the compared arms that have no score."""
        return sum(missing for missing, _ in missing_runs(self.tallies, self.plan).values())

    @property
    def feedback(self) -> Json:
        """eval_feedback_aggregate.json."""
        return feedback_document(self.suggestions, self.plan)

    @property
    def run_summary(self) -> Json:
        """Every configuration in numbers, and the delta."""
        return run_summary(self.tallies, self.plan)

    def metadata(self) -> Json:
        """What was run, with what, when."""
        plan = self.plan
        provenance: Json = {**plan.provenance, "assay_version": version("skill-assay")}
        provenance["simulated"] = self.tallies.simulated > 0
        for name, seen in (
            ("judge_prompt_versions", self.tallies.judge_prompts),
            ("sandbox_tiers", self.tallies.sandboxes),
        ):
            provenance[name] = [*sorted(seen)] or plan.provenance.get(name)
        return {
            "skill_name": plan.skill_name,
            "skill_path": plan.skill_path,
            "executor_model": plan.executor_model,
            "analyzer_model": plan.analyzer_model,
            "timestamp": plan.timestamp,
            "evals_run": list(self.tallies.cases),
            "runs_per_configuration": plan.runs_per_configuration or _most_runs(self.tallies),
            "interim": plan.is_interim,
            "provenance": provenance,
        }

    def write_benchmark(self, out: IO[bytes]) -> None:
        """Write benchmark.json; the runs are copied, not loaded."""
        out.write(b"{")
        _member(out, "metadata", self.metadata(), first=True)
        _array(out, "runs", self.runs)
        _member(out, "run_summary", self.run_summary)
        _member(out, "notes", [*self.notes, *self.extra_notes])
        _member(out, "coverage", self.coverage)
        _member(out, "statistics", statistics_document(self.statistics, self.tallies, self.plan))
        _lines(out, "items", (item_document(item) for item in self.items))
        _array(out, "uncounted_runs", self.uncounted)
        _member(out, "warnings", list(self.warnings))
        out.write(b"\n}\n")

    def write_feedback(self, out: IO[bytes]) -> None:
        """Write eval_feedback_aggregate.json."""
        out.write(encoded(self.feedback, indent=2) + b"\n")

    def close(self) -> None:
        """Let go of the spools."""
        self.runs.close()
        self.uncounted.close()


def _most_runs(tallies: Tallies) -> int:
    return max((tally.runs for case in tallies.cases.values() for tally in case.arms.values()), default=0)


def _key(out: IO[bytes], name: str, *, first: bool = False) -> None:
    out.write(b"\n  " if first else b",\n  ")
    out.write(encoded(name) + b": ")


def _member(out: IO[bytes], name: str, value: JsonValue, *, first: bool = False) -> None:
    _key(out, name, first=first)
    out.write(encoded(value, indent=2).replace(b"\n", b"\n  "))


def _array(out: IO[bytes], name: str, spool: Spool) -> None:
    _key(out, name)
    spool.copy_to(out)


def _lines(out: IO[bytes], name: str, entries: Iterable[Json]) -> None:
    _key(out, name)
    spool = Spool()
    for entry in entries:
        spool.add(entry)
    spool.copy_to(out)
    spool.close()


class Aggregator:
    """Takes runs one by one, in the order they should be listed, and says at the end what they say together."""

    def __init__(self, plan: BatchPlan) -> None:
        self.plan = plan
        self._tallies = Tallies()
        self._feedback = FeedbackTally()
        self._runs, self._uncounted = Spool(), Spool()
        self._warnings: list[str] = []
        for facts in plan.cases or ():
            self._tallies.cases[facts.id] = CaseTally(facts)

    def add(self, record: RunRecord) -> None:
        """Take one settled run in."""
        scores = score(record, self.plan.options) if record.outcome in COUNTED else None
        self._tallies.add(record, scores)
        self._feedback.add(record)
        if scores is None:
            self._uncounted.add(uncounted_run(record))
        else:
            self._runs.add(counted_run(record, scores))
            self._warn(record, scores)

    def _warn(self, record: RunRecord, scores: RunScores) -> None:
        place = f"{record.case.label}, {record.configuration}, run {record.run_number}"
        room = MOST_WARNINGS - len(self._warnings)
        self._warnings.extend(f"{place}: {warning}" for warning in scores.warnings[: max(0, room)])

    def finish(self) -> Aggregates:
        """What all runs so far say together; more runs may still be added, for a later finish."""
        found = statistics(self._tallies, self.plan)
        items = flagged([*_case_items(self._tallies, self.plan), *_dimension_items(self._tallies, self.plan)])
        return Aggregates(
            self.plan,
            self._tallies,
            found,
            items,
            notes(found, items, self._tallies, self.plan),
            list(self._warnings),
            coverage(self._tallies, self.plan),
            self._feedback,
            self._runs,
            self._uncounted,
        )


def _case_items(tallies: Tallies, plan: BatchPlan) -> Iterable[Item]:
    for case in tallies.cases.values():
        yield from case_items(case.facts, case.items, (plan.treatment, plan.control))


def _dimension_items(tallies: Tallies, plan: BatchPlan) -> Iterable[Item]:
    names = dict.fromkeys(name for tally in tallies.configurations.values() for name in tally.dimensions)
    for name in names:
        pooled = {arm: t.dimensions[name] for arm, t in tallies.configurations.items() if name in t.dimensions}
        strata = [case.scores[name] for case in tallies.cases.values() if name in case.scores]
        spreads = {arm: rounded(_within(tallies, arm, name)) or 0.0 for arm in pooled}
        yield dimension_item(name, pooled, strata, spreads, (plan.treatment, plan.control))


def _within(tallies: Tallies, configuration: str, dimension: str) -> float:
    """How much a dimension's score scatters between runs of the same case."""
    arms = (case.arms.get(configuration) for case in tallies.cases.values())
    found = (arm.dimensions.get(dimension, Moments()).variance for arm in arms if arm)
    variances = [variance for variance in found if variance is not None]
    return float((sum(variances) / len(variances)) ** 0.5) if variances else 0.0


def aggregate(records: Iterable[RunRecord], plan: BatchPlan) -> Aggregates:
    """Aggregate a batch from its runs, in the order they should be listed; close() the result when written."""
    aggregator = Aggregator(plan)
    for record in records:
        aggregator.add(record)
    return aggregator.finish()
