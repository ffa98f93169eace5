"""Statistics and items as they stand in benchmark.json."""

from pydantic import JsonValue

from service.aggregation.figures import rounded, significant
from service.aggregation.items import Item
from service.aggregation.moments import Moments
from service.aggregation.noise import noise_document
from service.aggregation.paired import Difference, MeanInterval, Ratio
from service.aggregation.rates import wilson
from service.aggregation.records import BatchPlan
from service.aggregation.scores import Kind
from service.aggregation.statistics import CaseEffect, MetricStatistics, PassK, Statistics
from service.aggregation.tallies import Tallies
from service.aggregation.words import label, verdict_sentence

Json = dict[str, JsonValue]
METHOD = (
    "per-case mean differences, treatment minus control; paired t with cases - 1 degrees of freedom, exact sign-flip "
    "beside it, TOST for no meaningful difference; runs of a case are repeats, never independent evidence"
)


def statistics_document(found: Statistics, tallies: Tallies, plan: BatchPlan) -> Json:
    """The `statistics` of benchmark.json."""
    options = plan.options
    return {
        "method": METHOD,
        "confidence": 0.95,
        "margin": options.margin,
        "interim": plan.is_interim,
        "treatment": found.treatment,
        "control": found.control,
        "metric": found.metric,
        "efficiency_weights": {"pass_rate": options.pass_weight, "rubric_normalized": options.rubric_weight},
        "verdict": label(found),
        "verdict_sentence": verdict_sentence(found, tallies),
        "metrics": {name: _metric(metric) for name, metric in found.metrics.items()},
        "dimensions": {name: _metric(metric) for name, metric in found.dimensions.items()},
        "ratios": {name: _ratio(factor) for name, factor in found.ratios.items()},
        "pass_k": {name: [_pass_k(entry) for entry in entries] for name, entries in found.pass_k.items()},
        "cases": [_effect(effect) for effect in found.effects],
        "judge_noise": noise_document(tallies.noise),
    }


def _metric(metric: MetricStatistics) -> Json:
    bounds = metric.bounds
    return {
        "arms": {name: {**_interval(arm), "runs": metric.runs[name]} for name, arm in metric.arms.items()},
        "delta": None if metric.delta is None else _difference(metric.delta),
        "smallest_detectable": rounded(metric.mde),
        "cases_needed": {"for_margin": metric.needed_for_margin, "for_observed": metric.needed_for_observed},
        "bounds_for_missing_runs": None
        if bounds is None
        else {"low": rounded(bounds.low), "high": rounded(bounds.high), "missing_runs": bounds.missing},
        "normalized_gain": rounded(metric.gain),
    }


def _interval(interval: MeanInterval) -> Json:
    return {
        "cases": interval.cases,
        "mean": rounded(interval.mean),
        "se": rounded(interval.se),
        "ci_low": rounded(interval.low),
        "ci_high": rounded(interval.high),
    }


def _difference(delta: Difference) -> Json:
    flip = delta.sign_flip
    return {
        "cases": delta.cases,
        "mean": rounded(delta.mean),
        "stddev": rounded(delta.stddev),
        "se": rounded(delta.se),
        "ci_low": rounded(delta.low),
        "ci_high": rounded(delta.high),
        "ci90_low": rounded(delta.low90),
        "ci90_high": rounded(delta.high90),
        "p": significant(delta.p),
        "sign_flip": {"p": significant(flip.p), "exact": flip.exact, "smallest_possible": significant(flip.smallest)},
        "tost_p": significant(delta.tost_p),
        "verdict": delta.verdict.value,
        "reason": delta.reason,
    }


def _ratio(factor: Ratio) -> Json:
    return {
        "cases": factor.cases,
        "ratio": rounded(factor.ratio),
        "ci_low": rounded(factor.low),
        "ci_high": rounded(factor.high),
        "p": significant(factor.p),
    }


def _pass_k(entry: PassK) -> Json:
    return {"k": entry.k, "pass_at_k": _interval(entry.at), "pass_hat_k": _interval(entry.hat)}


def _effect(effect: CaseEffect) -> Json:
    return {
        "eval_id": effect.case.facts.id,
        "eval_name": effect.case.facts.name,
        "treatment": _moments(effect.treatment),
        "control": _moments(effect.control),
        "delta": rounded(effect.delta),
        "ci_low": rounded(effect.low),
        "ci_high": rounded(effect.high),
    }


def _moments(moments: Moments | None) -> Json | None:
    if moments is None:
        return None
    return {"runs": moments.count, "mean": rounded(moments.mean), "stddev": rounded(moments.stddev)}


def item_document(item: Item) -> Json:
    """One entry of the `items` of benchmark.json."""
    found: Json = {"kind": item.kind.value, "id": item.id, "text": item.text}
    if item.kind is not Kind.DIMENSION:
        found = {"eval_id": item.case_id, "eval_name": item.case_label, **found, "critical": item.critical}
    return {
        **found,
        "arms": {name: _arm(item, name) for name in item.runs},
        "discrimination": rounded(item.discrimination),
        "p": significant(item.p),
        "q": significant(item.q),
        "certain": item.is_certain,
        "judge_flip_rate": rounded(item.flip_rate),
        "flags": [flag.value for flag in item.flags],
        "redundant_with": list(item.redundant_with),
    }


def _arm(item: Item, configuration: str) -> Json:
    runs = item.runs[configuration]
    if item.kind is Kind.DIMENSION:
        spread = item.spreads.get(configuration)
        return {"runs": runs, "mean": rounded(item.rates.get(configuration)), "stddev_within_case": rounded(spread)}
    passed = item.passed.get(configuration, 0)
    low, high = wilson(passed, runs) or (None, None)
    rate = rounded(item.rates.get(configuration))
    return {"runs": runs, "passed": passed, "rate": rate, "ci_low": rounded(low), "ci_high": rounded(high)}
