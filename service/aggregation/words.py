"""The verdict in words, the same in every file, page and terminal."""

from service.aggregation.figures import count, signed
from service.aggregation.paired import Difference, Verdict
from service.aggregation.statistics import MetricStatistics, Statistics
from service.aggregation.tallies import SCORES, Tallies

METRIC_WORDS = {
    "pass_rate": "pass rate",
    "rubric_normalized": "rubric score",
    "overall_efficiency": "overall score",
    "time_seconds": "time",
    "tokens": "tokens",
    "cost_usd": "cost",
}
NO_COMPARISON = "no comparison"


def label(found: Statistics) -> str:
    """The verdict as one of its names, or that there is nothing to compare."""
    return found.delta.verdict.value if found.delta else NO_COMPARISON


def verdict_sentence(found: Statistics, tallies: Tallies) -> str:
    """What a person should take away, in one sentence with its numbers."""
    if not any(tally.counted for tally in tallies.configurations.values()):
        return _no_run_counts(tallies)
    headline = found.headline
    if headline is None:
        return "No comparison: the runs that count carry no score; the suite asks for nothing that can be decided."
    if headline.delta is None:
        return _one_arm(found, headline)
    opening = {
        Verdict.HELPS: f"{found.treatment} helps",
        Verdict.HURTS: f"{found.treatment} hurts",
        Verdict.NO_DIFFERENCE: "No meaningful difference",
        Verdict.INCONCLUSIVE: "Inconclusive",
    }[headline.delta.verdict]
    return f"{opening}: {difference_words(headline)}.{_outlook(headline)}"


def difference_words(metric: MetricStatistics) -> str:
    """A difference with its interval and the cases behind it."""
    delta = metric.delta
    name = METRIC_WORDS.get(metric.metric, metric.metric)
    if delta is None:
        return f"{name} cannot be compared"
    return f"{name} {signed(delta.mean, 2)}{interval_words(delta)} over {count(delta.cases, 'case')}"


def interval_words(delta: Difference, most: float = 1.0) -> str:
    """The interval that decided, in brackets; empty when there is none."""
    if delta.low is None or delta.high is None or not delta.se:
        return ""
    if delta.verdict is Verdict.NO_DIFFERENCE and delta.low90 is not None and delta.high90 is not None:
        return f" (90 % interval {span(delta.low90, delta.high90, most)})"
    return f" (95 % interval {span(delta.low, delta.high, most)})"


def span(low: float, high: float, most: float = 1.0) -> str:
    """An interval of a difference for reading, cut off where no difference can be."""
    return f"{signed(max(low, -most), 2)} to {signed(min(high, most), 2)}"


def _outlook(metric: MetricStatistics) -> str:
    """What would settle it, for a verdict that is none."""
    delta = metric.delta
    if delta is None or delta.verdict is not Verdict.INCONCLUSIVE:
        return ""
    if metric.mde is None:
        return " One case cannot tell a skill from chance: add cases."
    needed = metric.needed_for_observed
    if needed is None or needed <= delta.cases:
        needed = metric.needed_for_margin
    if needed is None or needed <= delta.cases:
        return f" Add cases: {delta.reason}."
    return f" About {needed:,} cases would settle it; more cases help more than more runs."


def _no_run_counts(tallies: Tallies) -> str:
    outcomes: dict[str, int] = {}
    for tally in tallies.configurations.values():
        for outcome, number in tally.outcomes.items():
            outcomes[outcome.value] = outcomes.get(outcome.value, 0) + number
    listed = ", ".join(f"{name} {number}" for name, number in sorted(outcomes.items()))
    return f"No comparison: none of {count(sum(outcomes.values()), 'run')} counts ({listed or 'nothing ran'})."


def _one_arm(found: Statistics, headline: MetricStatistics) -> str:
    if found.treatment is None or found.control is None:
        arms = " and ".join(headline.arms)
        return f"No comparison: {arms} alone has no counterpart in a known role; a difference needs two arms."
    missing = [arm for arm in (found.treatment, found.control) if arm not in headline.arms]
    if missing:
        return f"No comparison: {' and '.join(missing)} has no run that counts; a difference needs both arms."
    return "No comparison: no case has counted runs in both arms."


def figure(value: float, metric: str) -> str:
    """A metric for reading, with its unit."""
    if metric in SCORES:
        return f"{100 * value:.0f} %"
    return {"time_seconds": f"{value:,.1f} s", "tokens": f"{value:,.0f}", "cost_usd": f"${value:,.4f}"}[metric]
