"""The report of a batch: figures made ready for the page, runs streamed into it one by one."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby
from typing import IO

from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup

from schemas.states import Role
from service.aggregation.benchmark import Aggregates
from service.aggregation.document import METHOD
from service.aggregation.figures import count, signed
from service.aggregation.records import COUNTED, CaseFacts, RunRecord
from service.aggregation.runs import user_notes
from service.aggregation.scores import RunScores, score, time_seconds, total_tokens
from service.aggregation.words import METRIC_WORDS
from service.reporting import tables
from service.reporting.charts import MOST_ROWS, Pair, Row, dumbbells, forest
from service.reporting.excerpts import Budget, Excerpt, Limits, readable
from service.workspaces.artifacts import Artifacts


@dataclass(frozen=True, slots=True)
class RunView:
    """One run as the page shows it."""

    record: RunRecord
    scores: RunScores | None
    excerpts: list[Excerpt]
    notes: list[str]

    @property
    def seconds(self) -> float | None:
        """How long the executor took."""
        return time_seconds(self.record)

    @property
    def tokens(self) -> int | None:
        """All tokens of the run."""
        return total_tokens(self.record)

    @property
    def is_treatment(self) -> bool:
        """Whether it ran with what is on trial."""
        return self.record.role is Role.TREATMENT


@dataclass(frozen=True, slots=True)
class CaseView:
    """One case and the runs of it that are shown."""

    facts: CaseFacts
    runs: list[RunView]
    settled: int  # how many there are to show


@dataclass(frozen=True, slots=True)
class Charts:
    """The drawings, each for a page and for a phone; empty where there is nothing to draw."""

    forest: Markup
    forest_narrow: Markup
    dimensions: Markup
    dimensions_narrow: Markup


def write_report(
    found: Aggregates, runs: Iterable[RunRecord], artifacts: Artifacts, out: IO[bytes], limits: Limits | None = None
) -> None:
    """Write the page; `runs` come in the order they were aggregated in, and only one case is held at a time."""
    chosen = limits or Limits()
    budget = Budget(chosen)
    context = {
        "budget": budget,
        "found": found,
        "statistics": found.statistics,
        "tables": tables.Tables(found),
        "charts": _charts(found),
        "cases": _cases(runs, found, artifacts, budget),
        "limits": chosen,
        "method": METHOD,
        "metric": METRIC_WORDS.get(found.statistics.metric or "", "score"),
        "most_rows": MOST_ROWS,
        "shown_items": tables.SHOWN_ITEMS,
        "of_each_arm": chosen.runs_of_each_arm(found),
    }
    for piece in _template().generate(context):
        out.write(piece.encode("utf-8", "replace"))


@lru_cache(maxsize=1)
def _template() -> Template:
    environment = Environment(
        loader=PackageLoader("service.reporting"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "signed": signed,
        "percent": lambda value: f"{100 * value:.0f} %",
        "readable": lambda text: readable(str(text)),
        "count": count,
        "size": _size,
        "seconds": lambda value: f"{value:,.1f} s",
    }
    return environment.get_template("report.html")


def _size(size: int) -> str:
    if size < 1024:
        return f"{size} B"
    return f"{size / 1024:,.0f} KiB" if size < 2**20 else f"{size / 2**20:,.1f} MiB"


def _charts(found: Aggregates) -> Charts:
    """Markup only here: matplotlib wrote it, and charts.py let nothing but shapes and text through."""
    effects = [effect for effect in found.statistics.effects if effect.delta is not None]
    effects.sort(key=lambda effect: -(effect.delta or 0.0))
    rows = [Row(effect.case.facts.label, effect.delta or 0.0, effect.low, effect.high) for effect in effects]
    delta = found.statistics.delta
    overall = Row("all cases", delta.mean, delta.low, delta.high) if delta else None
    pairs = [_pair(found, name) for name in found.statistics.dimensions]
    axis = f"difference in {METRIC_WORDS.get(found.statistics.metric or '', 'score')}, treatment minus control"

    def drawn(is_wanted: bool, draw: str) -> Markup:
        return Markup(draw) if is_wanted else Markup("")  # noqa: S704 - see the docstring

    return Charts(
        drawn(bool(rows), forest(rows, overall, axis, narrow=False) if rows else ""),
        drawn(bool(rows), forest(rows, overall, "treatment minus control", narrow=True) if rows else ""),
        drawn(
            bool(pairs), dumbbells(pairs, 1, 5, "mean score over cases", "dimensions", narrow=False) if pairs else ""
        ),
        drawn(bool(pairs), dumbbells(pairs, 1, 5, "mean score", "dimensions", narrow=True) if pairs else ""),
    )


def _pair(found: Aggregates, name: str) -> Pair:
    arms = found.statistics.dimensions[name].arms
    one, zero = (arms.get(arm or "") for arm in (found.plan.treatment, found.plan.control))
    return Pair(name, one.mean if one else None, zero.mean if zero else None)


def _cases(runs: Iterable[RunRecord], found: Aggregates, artifacts: Artifacts, budget: Budget) -> Iterator[CaseView]:
    """Case by case; each may use its share of the page and what those before it left, so that none is shut out."""
    most, cases = budget.limits.runs_of_each_arm(found), max(1, len(found.tallies.cases))
    for place, (_, group) in enumerate(groupby(runs, key=lambda run: (type(run.case.id), run.case.id)), 1):
        views: list[RunView] = []
        for record in group:
            if budget.has_room(place / cases) and record.run_number <= most:
                budget.count(record)
                views.append(_view(record, found, artifacts, budget))
        if views:
            facts = views[0].record.case
            yield CaseView(facts, views, sum(tally.runs for tally in found.tallies.cases[facts.id].arms.values()))


def _view(record: RunRecord, found: Aggregates, artifacts: Artifacts, budget: Budget) -> RunView:
    scores = score(record, found.plan.options) if record.outcome in COUNTED else None
    notes = [*user_notes(record.grading.user_notes if record.grading else None), *record.notes]
    return RunView(record, scores, budget.excerpts(record, artifacts), notes)
