"""The `run_summary` of a benchmark: each configuration over its runs, and treatment minus control as strings."""

from collections.abc import Mapping

from pydantic import JsonValue

from service.aggregation.figures import Figures, signed, spread
from service.aggregation.records import BatchPlan
from service.aggregation.tallies import CRITERIA, Tallies, Tally

# The places of each delta are part of the format.
_DELTAS = {
    "pass_rate": 2,
    "rubric_normalized": 2,
    "overall_efficiency": 2,
    "time_seconds": 1,
    "tokens": 0,
    "cost_usd": 4,
}
_ALWAYS = ("pass_rate", "time_seconds", "tokens")  # readers expect these three, if need be as null


def ordered_configurations(tallies: Tallies, plan: BatchPlan) -> list[str]:
    """Treatment, control, then the others: viewers take the first two as their columns."""
    known = [plan.treatment, plan.control, *(arm.configuration for arm in plan.arms)]
    seen = [name for name in known if name in tallies.configurations]
    return list(dict.fromkeys([*seen, *tallies.configurations]))


def run_summary(tallies: Tallies, plan: BatchPlan) -> dict[str, JsonValue]:
    """Every configuration, then the delta; without two arms that have numbers there is none to give."""
    names = [name for name in ordered_configurations(tallies, plan) if name is not None]
    summaries = {name: _configuration(tallies.configurations[name]) for name in names}
    delta = _delta(summaries, plan)
    return {**summaries, "delta": delta} if delta is not None else {**summaries}


def _configuration(tally: Tally) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {}
    for name in (*_DELTAS, *CRITERIA):
        moments = tally.metrics.get(name)
        if moments is not None:
            found[name] = _json(spread(moments))
        elif name in _ALWAYS:
            found[name] = None
        if name == "overall_efficiency" and moments is not None:
            found["consistency"] = consistency(moments.mean or 0.0, moments.stddev)
    if tally.dimensions:
        found["rubric_dimensions"] = {name: _json(spread(moments)) for name, moments in tally.dimensions.items()}
    return found


def _json(figures: Figures) -> dict[str, JsonValue]:
    return dict(figures)


def consistency(mean: float, stddev: float) -> float:
    """1 - stddev/mean between 0 and 1; a mean of 0 is consistent about nothing."""
    return round(min(1.0, max(0.0, 1.0 - stddev / mean)), 4) if mean > 0 else 0.0


def _delta(summaries: Mapping[str, dict[str, JsonValue]], plan: BatchPlan) -> dict[str, JsonValue] | None:
    one, zero = summaries.get(plan.treatment or ""), summaries.get(plan.control or "")
    if one is None or zero is None:
        return None
    found: dict[str, JsonValue] = {}
    for name, places in _DELTAS.items():
        left, right = _mean(one.get(name)), _mean(zero.get(name))
        if left is not None and right is not None:
            found[name] = signed(left - right, places)
    return found or None


def _mean(figures: JsonValue) -> float | None:
    mean = figures.get("mean") if isinstance(figures, dict) else None
    return mean if isinstance(mean, int | float) else None
