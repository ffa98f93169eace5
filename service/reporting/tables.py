"""The figures of the report's tables and cards, in words."""

from collections.abc import Iterator
from dataclasses import dataclass

from service.aggregation.benchmark import Aggregates
from service.aggregation.coverage import outcome_words
from service.aggregation.figures import count, signed
from service.aggregation.items import Flag, Item
from service.aggregation.paired import Verdict
from service.aggregation.scores import Kind
from service.aggregation.tallies import COSTS, SCORES
from service.aggregation.words import METRIC_WORDS, NO_COMPARISON, figure, span

MOST_ITEMS = 200
SHOWN_ITEMS = 12  # the others behind a fold
MOST_SUGGESTIONS = 30
_ORDER = (Flag.HURTS, Flag.NEVER_PASSES, Flag.JUDGE_NOISE, Flag.NO_SIGNAL, Flag.REDUNDANT, Flag.FLAKY)
TONES = {
    Verdict.HELPS.value: "good",
    Verdict.HURTS.value: "bad",
    Verdict.NO_DIFFERENCE.value: "calm",
    Verdict.INCONCLUSIVE.value: "open",
    NO_COMPARISON: "none",
}
TITLES = {
    Verdict.HELPS.value: "The skill helps",
    Verdict.HURTS.value: "The skill hurts",
    Verdict.NO_DIFFERENCE.value: "No meaningful difference",
    Verdict.INCONCLUSIVE.value: "Inconclusive",
    NO_COMPARISON: "No comparison",
}
ADVICE = {
    Flag.NO_SIGNAL: "passes in every run of both arms: it tells nothing apart",
    Flag.NEVER_PASSES: "never passes: broken, or beyond both arms",
    Flag.HURTS: "passes less often with the treatment",
    Flag.FLAKY: "the same arm passes and fails",
    Flag.JUDGE_NOISE: "the judge decides the same output differently",
    Flag.REDUNDANT: "always decides as another item of its case",
}


@dataclass(frozen=True, slots=True)
class Card:
    """One figure of the head of the page."""

    title: str
    figure: str
    detail: str


@dataclass(frozen=True, slots=True)
class ItemGroup:
    """One check worth a look, in one case or in several."""

    text: str
    flags: tuple[Flag, ...]
    where: str
    rates: list[str]
    advice: str
    redundant_with: tuple[str, ...]
    is_certain: bool


@dataclass(frozen=True, slots=True)
class ArmRow:
    """One metric over all runs of each configuration."""

    name: str
    arms: list[str]
    delta: str
    interval: str


class Tables:
    """What the template shows, computed on demand."""

    def __init__(self, found: Aggregates) -> None:
        self._found = found

    @property
    def tone(self) -> str:
        """The colour of the verdict."""
        return TONES[self._found.verdict]

    @property
    def title(self) -> str:
        """The verdict in three words."""
        return TITLES[self._found.verdict]

    @property
    def configurations(self) -> list[str]:
        """Columns of the tables: treatment, control, then the others."""
        return [name for name in self._found.run_summary if name != "delta"]

    def cards(self) -> Iterator[Card]:
        """The figures one looks for first."""
        found, headline = self._found, self._found.statistics.headline
        if headline is not None:
            name = METRIC_WORDS.get(headline.metric, headline.metric)
            for arm in (found.plan.treatment, found.plan.control):
                interval = headline.arms.get(arm or "")
                if arm is not None and interval is not None:
                    yield Card(arm, f"{100 * interval.mean:.0f} %", f"{name} over {count(interval.cases, 'case')}")
        delta = found.statistics.delta
        if delta is not None:
            text = span(delta.low, delta.high) if delta.se and delta.low is not None and delta.high is not None else ""
            detail = f"95 % interval {text}" if text else "no interval"
            yield Card("difference", signed(delta.mean, 2), detail)
        counted, planned = found.coverage["counted"], found.coverage["planned"]
        yield Card("runs that count", f"{counted} of {planned}", self._others())

    def _others(self) -> str:
        return ", ".join(outcome_words(self._found.coverage)).replace("_", " ") or "nothing ran"

    def certainty(self) -> Iterator[tuple[str, str]]:
        """How sure one can be, and what it would take to be surer."""
        headline, delta = self._found.statistics.headline, self._found.statistics.delta
        if headline is None or delta is None:
            return
        if delta.p is not None:
            yield "paired t test", f"p = {delta.p:.2g}"
        kind = "exact sign-flip test" if delta.sign_flip.exact else "sign-flip test"
        yield kind, f"p = {delta.sign_flip.p:.2g} (smallest possible {delta.sign_flip.smallest:.2g})"
        if delta.tost_p is not None:
            margin = self._found.plan.options.margin
            yield f"equivalence within ±{margin:g}", f"p = {delta.tost_p:.2g}"
        if headline.mde is not None:
            yield "smallest difference these cases would find", f"{headline.mde:.2f}"
        if headline.needed_for_observed:
            yield "cases needed for a difference of this size", f"{headline.needed_for_observed:,}"
        if headline.bounds and headline.bounds.missing:
            bounds = headline.bounds
            yield f"if {count(bounds.missing, 'missing run')} had gone either way", span(bounds.low, bounds.high)
        if headline.gain is not None:
            yield "share of the room above the control used", f"{100 * headline.gain:.0f} %"
        yield from self._pass_k()

    def _pass_k(self) -> Iterator[tuple[str, str]]:
        for name, entries in self._found.statistics.pass_k.items():
            last = entries[-1]
            if last.k > 1:
                both = f"{100 * last.hat.mean:.0f} % / {100 * last.at.mean:.0f} %"
                yield f"{name}: all / any of {last.k} runs pass everything", both

    def arms(self) -> Iterator[ArmRow]:
        """Every metric, mean and spread over runs."""
        found = self._found
        delta = found.run_summary.get("delta")
        for metric in (*SCORES, *COSTS):
            cells = [_pooled(found, name, metric) for name in self.configurations]
            if all(cell == "—" for cell in cells):
                continue
            change = str(delta.get(metric, "—")) if isinstance(delta, dict) else "—"
            yield ArmRow(METRIC_WORDS[metric], cells, change, self._interval(metric))

    def _interval(self, metric: str) -> str:
        ratio = self._found.statistics.ratios.get(metric)
        if ratio is not None:
            ends = "" if ratio.low is None or ratio.high is None else f" ({ratio.low:.2f} to {ratio.high:.2f})"
            return f"× {ratio.ratio:.2f}{ends}"
        statistics = self._found.statistics.metrics.get(metric)
        delta = statistics.delta if statistics else None
        if delta is None or not delta.se or delta.low is None or delta.high is None:
            return "—"
        return span(delta.low, delta.high)

    def dimensions(self) -> Iterator[tuple[str, list[str], str]]:
        """Name, mean per arm, difference in words."""
        arms = [arm for arm in (self._found.plan.treatment, self._found.plan.control) if arm]
        for name, metric in self._found.statistics.dimensions.items():
            means = [f"{metric.arms[arm].mean:.2f}" if arm in metric.arms else "—" for arm in arms]
            delta = metric.delta
            words = "—" if delta is None else signed(delta.mean, 2)
            if delta is not None and delta.se and delta.low is not None and delta.high is not None:
                words += f" ({span(delta.low, delta.high, 4.0)})"
            yield name, means, words

    @property
    def flagged(self) -> int:
        """How many items have a flag."""
        return sum(bool(item.flags) for item in self._found.items)

    def items(self) -> list[ItemGroup]:
        """Items worth a look, the harmful ones first; equal ones of several cases together."""
        groups: dict[tuple[object, ...], list[Item]] = {}
        for item in self._found.items:
            if item.flags:
                groups.setdefault((item.kind, item.text, item.flags), []).append(item)
        ordered = sorted(groups.values(), key=lambda group: min(map(_ORDER.index, group[0].flags)))
        return [self._group(group) for group in ordered[:MOST_ITEMS]]

    def _group(self, items: list[Item]) -> ItemGroup:
        first = items[0]
        labels = list(dict.fromkeys(item.case_label or "all cases" for item in items))
        return ItemGroup(
            first.text,
            first.flags,
            labels[0] if len(labels) == 1 else f"{len(labels)} cases: {', '.join(labels)}",
            [_rate(items, name) for name in self.configurations[:2]],
            "; ".join(ADVICE[flag] for flag in first.flags),
            first.redundant_with,
            all(item.is_certain for item in items),
        )

    def suggestions(self) -> list[dict[str, object]]:
        """What judges say about the suite, most frequent first."""
        found = self._found.feedback["suggestions"]
        entries = found if isinstance(found, list) else []
        return [dict(entry) for entry in entries[:MOST_SUGGESTIONS] if isinstance(entry, dict)]

    def provenance(self) -> Iterator[tuple[str, str]]:
        """What was run, with what, when."""
        for name, value in self._found.metadata().items():
            if name == "provenance" and isinstance(value, dict):
                yield from ((key.replace("_", " "), str(v)) for key, v in value.items() if v is not None)
            elif value is not None and name not in ("evals_run", "provenance"):
                yield name.replace("_", " "), str(value)


def _rate(items: list[Item], configuration: str) -> str:
    """How equal items fare in an arm, together."""
    runs = sum(item.runs.get(configuration, 0) for item in items)
    if not runs:
        return "—"
    if items[0].kind is Kind.DIMENSION:
        return f"{items[0].rates[configuration]:.1f} of 5"
    return f"{sum(item.passed.get(configuration, 0) for item in items)} of {runs}"


def _pooled(found: Aggregates, configuration: str, metric: str) -> str:
    moments = found.tallies.configurations[configuration].metrics.get(metric)
    if moments is None or moments.mean is None:
        return "—"
    return f"{figure(moments.mean, metric)} ± {figure(moments.stddev, metric)}"
