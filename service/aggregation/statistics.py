"""The `statistics` of a benchmark: every metric paired over cases, and the verdict."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from schemas.states import Outcome
from service.aggregation.coverage import planned_runs
from service.aggregation.moments import Moments
from service.aggregation.paired import (
    ArmSpread,
    Difference,
    MeanInterval,
    Ratio,
    case_interval,
    cases_needed,
    difference,
    mean_interval,
    planning_variance,
    ratio,
    smallest_detectable,
)
from service.aggregation.rates import largest_common_k, normalized_gain, pass_at_k, pass_hat_k
from service.aggregation.records import BatchPlan
from service.aggregation.tallies import COSTS, SCORES, CaseTally, Tallies, Tally

Read = Callable[[Tally], Moments | None]


@dataclass(frozen=True, slots=True)
class Bounds:
    """The difference if every missing run had gone against the treatment, and if for it."""

    low: float
    high: float
    missing: int


@dataclass(frozen=True, slots=True)
class MetricStatistics:
    """One metric: both arms, their difference and what it would take to know more."""

    metric: str
    arms: dict[str, MeanInterval]
    runs: dict[str, int]
    delta: Difference | None
    mde: float | None
    needed_for_margin: int | None
    needed_for_observed: int | None
    bounds: Bounds | None
    gain: float | None
    floors: dict[str, float]  # mean per arm over all cases with every missing run at 0


@dataclass(frozen=True, slots=True)
class CaseEffect:
    """One case: both arms and their difference, with an interval when both arms were repeated."""

    case: CaseTally
    treatment: Moments | None
    control: Moments | None
    delta: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class PassK:
    """pass@k and pass^k of one configuration, averaged over cases."""

    k: int
    at: MeanInterval
    hat: MeanInterval


@dataclass(frozen=True, slots=True)
class Statistics:
    """Everything that is said about the difference between the arms."""

    treatment: str | None
    control: str | None
    metric: str | None  # the one the verdict is about
    metrics: dict[str, MetricStatistics]
    dimensions: dict[str, MetricStatistics]
    ratios: dict[str, Ratio]
    effects: list[CaseEffect]
    pass_k: dict[str, list[PassK]]

    @property
    def headline(self) -> MetricStatistics | None:
        """The metric of the verdict."""
        return self.metrics.get(self.metric) if self.metric else None

    @property
    def delta(self) -> Difference | None:
        """The difference the verdict is about; None without two arms that share a case."""
        return self.headline.delta if self.headline else None


def _reader(metric: str) -> Read:
    return lambda tally: tally.metrics.get(metric)


def _dimension_reader(name: str) -> Read:
    return lambda tally: tally.dimensions.get(name)


def statistics(tallies: Tallies, plan: BatchPlan) -> Statistics:
    """All statistics of a batch."""
    cases = list(tallies.cases.values())
    metrics = {name: found for name in SCORES if (found := _metric(name, _reader(name), cases, plan))}
    names = dict.fromkeys(name for tally in tallies.configurations.values() for name in tally.dimensions)
    dimensions = {n: found for n in names if (found := _metric(n, _dimension_reader(n), cases, plan, points=True))}
    metric = plan.options.metric if plan.options.metric in metrics else _headline(metrics)
    return Statistics(
        plan.treatment,
        plan.control,
        metric,
        metrics,
        dimensions,
        {name: factor for name in COSTS if (factor := _cost_ratio(name, cases, plan))},
        [_effect(case, metric, plan) for case in cases],
        {name: rates for name in tallies.configurations if (rates := _pass_k(name, cases))},
    )


def _headline(metrics: dict[str, MetricStatistics]) -> str | None:
    """The combined score only where two parts are combined; else it would be a second name for one of them."""
    if "pass_rate" in metrics and "rubric_normalized" in metrics:
        return "overall_efficiency"
    return next(iter(metrics), None)


def _means(cases: Sequence[CaseTally], read: Read, configuration: str | None) -> Iterator[Moments]:
    for case in cases:
        tally = case.tally(configuration)
        moments = read(tally) if tally else None
        if moments is not None and moments.count:
            yield moments


def _pairs(cases: Sequence[CaseTally], read: Read, plan: BatchPlan) -> list[tuple[Moments, Moments]]:
    """Both arms of every case that has both."""
    found = []
    for case in cases:
        one, zero = case.tally(plan.treatment), case.tally(plan.control)
        left, right = (read(one) if one else None), (read(zero) if zero else None)
        if left is not None and right is not None:
            found.append((left, right))
    return found


def _metric(
    name: str, read: Read, cases: Sequence[CaseTally], plan: BatchPlan, *, points: bool = False
) -> MetricStatistics | None:
    """One metric; `points` are a dimension's 1-5, where the margin is wider and bounds have no 0 and 1."""
    found = {arm.configuration: list(_means(cases, read, arm.configuration)) for arm in plan.arms}
    arms = {
        arm: interval for arm, group in found.items() if (interval := mean_interval([m.mean or 0.0 for m in group]))
    }
    if not arms:
        return None
    pairs = _pairs(cases, read, plan)
    per_case = [(one.mean or 0.0) - (zero.mean or 0.0) for one, zero in pairs]
    margin = plan.options.margin * (4 if points else 1)
    delta = difference(per_case, margin)
    variance = planning_variance(per_case, *(_spread([pair[side] for pair in pairs]) for side in (0, 1)))
    return MetricStatistics(
        name,
        arms,
        {arm: sum(moments.count for moments in group) for arm, group in found.items()},
        delta,
        None if variance is None else smallest_detectable(variance, len(pairs)),
        None if variance is None else cases_needed(variance, margin),
        None if variance is None or delta is None else cases_needed(variance, delta.mean),
        None if points else _bounds(cases, read, plan),
        None if points else _gain(pairs),
        {} if points else {arm: _floor(cases, read, plan, arm) for arm in arms},
    )


def _spread(arm: Sequence[Moments]) -> ArmSpread:
    """Mean within-case variance, and the harmonic mean of the repeats behind a case mean."""
    variances = [moments.variance for moments in arm if moments.variance is not None]
    runs = len(arm) / math.fsum(1 / moments.count for moments in arm) if arm else 1.0
    return ArmSpread(math.fsum(variances) / len(variances) if variances else None, runs)


def _gain(pairs: Sequence[tuple[Moments, Moments]]) -> float | None:
    """Normalized gain from the arm means of the paired cases, never a mean of ratios."""
    if not pairs:
        return None
    one, zero = (math.fsum(pair[side].mean or 0.0 for pair in pairs) / len(pairs) for side in (0, 1))
    return normalized_gain(one, zero)


def _bounds(cases: Sequence[CaseTally], read: Read, plan: BatchPlan) -> Bounds | None:
    """The difference with all missing runs at their worst and at their best for the treatment."""
    lows, highs, missing = [], [], 0
    for case in cases:
        arms = [case.tally(arm) for arm in (plan.treatment, plan.control)]
        one, zero = (_range(tally, read, plan) for tally in arms)
        if one is None or zero is None or not _is_asked(arms, read):
            continue
        lows.append(one[0] - zero[1])
        highs.append(one[1] - zero[0])
        missing += one[2] + zero[2]
    if not lows:
        return None
    return Bounds(math.fsum(lows) / len(lows), math.fsum(highs) / len(highs), missing)


def _floor(cases: Sequence[CaseTally], read: Read, plan: BatchPlan, arm: str) -> float:
    """An arm's mean over all its cases with every missing run at 0."""
    ranges = [_range(case.tally(arm), read, plan) for case in cases if _is_asked([*case.arms.values()], read)]
    lows = [found[0] for found in ranges if found is not None]
    return math.fsum(lows) / len(lows) if lows else 0.0


def missing_runs(tallies: Tallies, plan: BatchPlan) -> dict[str, tuple[int, int]]:
    """Runs without a score and runs planned, per arm of the comparison; what asks for nothing is not missed."""
    found = {}
    for arm in filter(None, (plan.treatment, plan.control)):
        tally = tallies.configurations.get(arm, Tally())
        planned = planned_runs(tallies, plan, arm) - tally.outcomes[Outcome.UNGRADED]
        found[arm] = planned - tally.counted, planned
    return found


def _is_asked(arms: Sequence[Tally | None], read: Read) -> bool:
    """Whether the case has this metric; a case without any counted run is given the benefit of the doubt."""
    known = [tally for tally in arms if tally and tally.counted]
    if known:
        return any(read(tally) for tally in known)
    outcomes = {outcome for tally in arms if tally for outcome in tally.outcomes}
    return outcomes != {Outcome.UNGRADED}


def _range(tally: Tally | None, read: Read, plan: BatchPlan) -> tuple[float, float, int] | None:
    """An arm's mean in one case with missing runs at 0, at 1, and how many are missing."""
    moments = read(tally) if tally else None
    total, count = (moments.total, moments.count) if moments else (0.0, 0)
    # Runs that are planned and runs that were seen but have no score are both missing.
    planned = max(plan.runs_per_configuration or 0 if plan.cases else 0, tally.runs if tally else 0)
    if planned == 0:
        return None
    absent = max(0, planned - count)
    return total / planned, (total + absent) / planned, absent


def _cost_ratio(name: str, cases: Sequence[CaseTally], plan: BatchPlan) -> Ratio | None:
    return ratio([(one.mean or 0.0, zero.mean or 0.0) for one, zero in _pairs(cases, _reader(name), plan)])


def _effect(case: CaseTally, metric: str | None, plan: BatchPlan) -> CaseEffect:
    arms = (case.tally(plan.treatment), case.tally(plan.control))
    one, zero = (tally.metrics.get(metric or "") if tally else None for tally in arms)
    if one is None or zero is None:
        return CaseEffect(case, one, zero, None, None, None)
    delta = (one.mean or 0.0) - (zero.mean or 0.0)
    if (not one.variance and not zero.variance) or one.variance is None or zero.variance is None:
        return CaseEffect(case, one, zero, delta, None, None)
    interval = case_interval(one.mean or 0.0, one.variance, one.count, zero.mean or 0.0, zero.variance, zero.count)
    return CaseEffect(case, one, zero, delta, *interval)


def _pass_k(configuration: str, cases: Sequence[CaseTally]) -> list[PassK]:
    tallies = [tally for case in cases if (tally := case.tally(configuration)) and tally.judged_full]
    counts = [(tally.full_passes, tally.judged_full) for tally in tallies]
    found = []
    for k in range(1, largest_common_k(counts) + 1):
        at = mean_interval([pass_at_k(passed, runs, k) for passed, runs in counts])
        hat = mean_interval([pass_hat_k(passed, runs, k) for passed, runs in counts])
        if at and hat:
            found.append(PassK(k, at, hat))
    return found
