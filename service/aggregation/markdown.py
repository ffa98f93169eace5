"""benchmark.md for reading, and a summary of one screen for a pull request."""

from collections.abc import Iterable, Iterator, Sequence

from service.aggregation.benchmark import Aggregates
from service.aggregation.coverage import outcome_words
from service.aggregation.figures import count, percent, signed
from service.aggregation.gates import GateReport
from service.aggregation.items import Item
from service.aggregation.noise import NoiseTally
from service.aggregation.statistics import CaseEffect, MetricStatistics
from service.aggregation.tallies import COSTS, SCORES, Tally
from service.aggregation.words import METRIC_WORDS, figure, interval_words, span

LONGEST_CELL = 160
MOST_ITEMS = 40
MOST_CASES_IN_SUMMARY = 10
_ACTIVE = str.maketrans({c: f"\\{c}" for c in "\\`*_[]<>|#~"})


def cell(text: str) -> str:
    """Foreign text that can neither break a table nor become markup."""
    flat = " ".join(text.split())
    short = flat if len(flat) <= LONGEST_CELL else flat[: LONGEST_CELL - 1] + "…"
    return short.translate(_ACTIVE)


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(header) + " |"
    yield "|" + "---|" * len(header)
    yield from ("| " + " | ".join(row) + " |" for row in rows)
    yield ""


def benchmark_markdown(found: Aggregates) -> str:
    """benchmark.md: verdict, arms, cases, dimensions, costs, items worth a look, notes."""
    lines = [
        f"# Benchmark of {cell(found.plan.skill_name)}",
        "",
        f"**{_opening(found)}{cell(found.verdict_sentence)}**",
        "",
    ]
    lines += [_coverage_line(found), "", *_arms(found), *_cases(found.statistics.effects, "## Cases")]
    lines += [*_dimensions(found), *_costs(found), *_items(found.items)]
    lines += _noise(found.tallies.noise)
    if found.notes or found.extra_notes:
        lines += ["## Notes", "", *(f"- {cell(note)}" for note in [*found.notes, *found.extra_notes]), ""]
    lines += _provenance(found)
    return "\n".join(lines).rstrip() + "\n"


def pull_request_summary(found: Aggregates, gates: GateReport | None = None) -> str:
    """What a reviewer needs on one screen."""
    title = f"### {cell(found.plan.skill_name)}: {_opening(found).lower()}{found.verdict}"
    lines = [title, "", f"{_opening(found)}{cell(found.verdict_sentence)}", ""]
    if gates is not None and gates.results:
        lines += [*(f"- **{gate.state.value}** {gate.name}: {cell(gate.sentence)}" for gate in gates.results), ""]
    lines += _arms(found, heading=None)
    effects = sorted(found.statistics.effects, key=lambda e: e.delta if e.delta is not None else 2.0)
    shown = effects[:MOST_CASES_IN_SUMMARY]
    title = "<summary>Cases</summary>"
    if len(shown) < len(effects):
        title = f"<summary>The {len(shown)} weakest of {len(effects)} cases</summary>"
    lines += ["<details>", title, "", *_cases(shown, heading=None), "</details>", "", _coverage_line(found)]
    return "\n".join(lines).rstrip() + "\n"


def _opening(found: Aggregates) -> str:
    """What a reader must know before the verdict."""
    words = ["interim"] if found.plan.is_interim else []
    words += ["simulated"] if found.tallies.simulated else []
    return f"{', '.join(words)}: ".capitalize() if words else ""


def _coverage_line(found: Aggregates) -> str:
    listed = ", ".join(outcome_words(found.coverage))
    paired = found.statistics.delta.cases if found.statistics.delta else 0
    interim = "Interim. " if found.plan.is_interim else ""
    return (
        f"{interim}{found.coverage['counted']} of {found.coverage['planned']} planned runs count ({listed or 'none'}); "
        f"{count(paired, 'case')} of {len(found.tallies.cases)} compared."
    )


def _arms(found: Aggregates, heading: str | None = "## Arms") -> Iterator[str]:
    names = [name for name in found.run_summary if name != "delta"]
    delta = found.run_summary.get("delta")
    rows = []
    for metric in (*SCORES, *COSTS):
        cells = [_pooled(found.tallies.configurations[name], metric) for name in names]
        if any(cell != "—" for cell in cells):
            change = str(delta.get(metric, "—")) if isinstance(delta, dict) else "—"
            rows.append([METRIC_WORDS[metric], *cells, change, _interval(found.statistics.metrics.get(metric))])
    if heading:
        yield from (heading, "")
    yield from _table(["", *map(cell, names), "delta", "95 % interval over cases"], rows)


def _pooled(tally: Tally, metric: str) -> str:
    moments = tally.metrics.get(metric)
    if moments is None or moments.mean is None:
        return "—"
    return f"{figure(moments.mean, metric)} ± {figure(moments.stddev, metric)}"


def _interval(metric: MetricStatistics | None) -> str:
    delta = metric.delta if metric else None
    if delta is None or delta.low is None or delta.high is None or not delta.se:
        return "—"
    return span(delta.low, delta.high)


def _cases(effects: Sequence[CaseEffect], heading: str | None) -> Iterator[str]:
    if heading:
        yield from (heading, "")
    yield from _table(["case", "treatment", "control", "delta", "95 % interval"], map(_case_row, effects))


def _case_row(effect: CaseEffect) -> list[str]:
    arms = [
        "—" if moments is None else f"{moments.mean or 0.0:.2f} ({count(moments.count, 'run')})"
        for moments in (effect.treatment, effect.control)
    ]
    delta = "—" if effect.delta is None else signed(effect.delta, 2)
    interval = "—"
    if effect.low is not None and effect.high is not None:
        interval = span(effect.low, effect.high)
    return [cell(effect.case.facts.label), *arms, delta, interval]


def _dimensions(found: Aggregates) -> Iterator[str]:
    if not found.statistics.dimensions:
        return
    arms = [arm for arm in (found.plan.treatment, found.plan.control) if arm]
    yield from ("## Rubric dimensions (1-5, mean over cases)", "")
    rows = []
    for name, metric in found.statistics.dimensions.items():
        means = [f"{metric.arms[arm].mean:.2f}" if arm in metric.arms else "—" for arm in arms]
        delta = metric.delta
        change = "—" if delta is None else f"{signed(delta.mean, 2)}{interval_words(delta, 4.0)}"
        rows.append([cell(name), *means, change])
    yield from _table(["dimension", *map(cell, arms), "delta"], rows)


def _costs(found: Aggregates) -> Iterator[str]:
    if not found.statistics.ratios:
        return
    yield from ("## Costs, treatment over control", "")
    rows = []
    for name, factor in found.statistics.ratios.items():
        interval = "—" if factor.low is None or factor.high is None else f"{factor.low:.2f} to {factor.high:.2f}"
        rows.append([METRIC_WORDS[name], f"× {factor.ratio:.2f}", interval, str(factor.cases)])
    yield from _table(["", "ratio", "95 % interval", "cases"], rows)


def _items(items: Sequence[Item]) -> Iterator[str]:
    worth = [item for item in items if item.flags]
    if not worth:
        return
    yield from ("## Items worth a look", "")
    rows = [
        [cell(i.case_label or "all cases"), cell(i.text), ", ".join(i.flags), _rates(i)] for i in worth[:MOST_ITEMS]
    ]
    yield from _table(["case", "item", "flags", "rates"], rows)
    if len(worth) > MOST_ITEMS:
        yield from (f"… and {len(worth) - MOST_ITEMS} more in benchmark.json.", "")


def _rates(item: Item) -> str:
    return ", ".join(f"{cell(name)} {rate:.2f} ({item.runs[name]})" for name, rate in item.rates.items())


def _noise(noise: NoiseTally) -> Iterator[str]:
    if not noise.runs and not noise.failed:
        return
    yield from ("## The judge, asked twice", "")
    failed = f" {count(noise.failed, 'more run')} gave no usable second answer." if noise.failed else ""
    rate = "nothing" if noise.flip_rate is None else f"{noise.flips} of {noise.decisions} ({percent(noise.flip_rate)})"
    yield from (f"{count(noise.runs, 'run')} judged twice; decided differently: {rate}.{failed}", "")
    rows = [
        [cell(name), str(a.pairs), percent(a.exact), percent(a.close), f"{a.mean_difference:.2f}"]
        for name, a in list(noise.scores.items())[:MOST_ITEMS]
    ]
    if rows:
        yield from _table(["score", "pairs", "equal", "at most 1 apart", "mean difference"], rows)


def _provenance(found: Aggregates) -> Iterator[str]:
    yield from ("## Provenance", "")
    for name, value in found.metadata().items():
        if name == "provenance" and isinstance(value, dict):
            yield from (f"- {cell(key)}: {cell(str(inner))}" for key, inner in value.items() if inner is not None)
        elif value is not None and name != "evals_run":
            yield f"- {name}: {cell(str(value))}"
