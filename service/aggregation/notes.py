"""The observations an analyst would write, by rules over the numbers; every note names its numbers."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from schemas.states import Outcome
from service.aggregation.coverage import planned_runs
from service.aggregation.figures import count, percent, signed
from service.aggregation.items import Flag, Item
from service.aggregation.paired import Verdict
from service.aggregation.records import BatchPlan
from service.aggregation.scores import Kind
from service.aggregation.statistics import CaseEffect, Statistics
from service.aggregation.tallies import Tallies
from service.aggregation.words import METRIC_WORDS, verdict_sentence

T = TypeVar("T")

MOST_OF_A_KIND = 5  # a note that repeats itself is not read
WIDE = 0.3  # a stddev of a 0-1 score between runs of the same case and arm that deserves a remark
SHOWN_TEXT = 120


def notes(found: Statistics, items: list[Item], tallies: Tallies, plan: BatchPlan) -> list[str]:
    """All notes, the most important first."""
    return [
        *_about_the_batch(tallies, plan),
        verdict_sentence(found, tallies),
        *_about_the_verdict(found),
        *_about_arms(tallies, plan),
        *_about_cases(found, plan.options.margin),
        *_about_costs(found),
        *_about_items(items, plan),
    ]


def _about_the_batch(tallies: Tallies, plan: BatchPlan) -> Iterator[str]:
    if plan.is_interim:
        seen = sum(tally.runs for tally in tallies.configurations.values())
        yield f"Interim: {count(seen, 'run')} so far; intervals and p values are not valid while runs are open."
    if tallies.simulated:
        yield f"{count(tallies.simulated, 'run')} came from the simulator, not from a model."
    if tallies.unpriced:
        model = f"model {plan.executor_model}" if plan.executor_model else "an unnamed model"
        yield f"Cost unknown for {model}: {count(tallies.unpriced, 'run')} without a price."


def _about_the_verdict(found: Statistics) -> Iterator[str]:
    headline, delta = found.headline, found.delta
    if headline is None or delta is None:
        return
    if delta.sign_flip.exact and delta.sign_flip.smallest > 0.05:
        smallest = delta.sign_flip.smallest
        yield f"With {count(delta.cases, 'case')} the exact test cannot go below p = {smallest:.2g}; 6 cases can."
    bounds = headline.bounds
    if bounds and bounds.missing:
        span = f"between {signed(bounds.low, 2)} and {signed(bounds.high, 2)}"
        yield f"{count(bounds.missing, 'run')} missing: had they gone either way, the difference would lie {span}."
    if delta.verdict is Verdict.INCONCLUSIVE and headline.mde is not None:
        yield f"{count(delta.cases, 'case')} would find a true difference of {headline.mde:.2f} four times out of five."


def _about_arms(tallies: Tallies, plan: BatchPlan) -> Iterator[str]:
    for name, tally in tallies.configurations.items():
        planned = planned_runs(tallies, plan, name)
        others = {o.value: n for o, n in tally.outcomes.items() if o not in (Outcome.SCORED, Outcome.GATED)}
        if tally.counted < planned:
            listed = ", ".join(f"{outcome} {number}" for outcome, number in sorted(others.items())) or "not run yet"
            yield f"{name}: {tally.counted} of {count(planned, 'planned run')} count ({listed})."
        if void := tally.judge_errors["control"]:
            yield f"{name}: {count(void, 'judgement')} void, because the judge answered the control statements wrongly."
        if gated := tally.outcomes[Outcome.GATED]:
            yield f"{name}: {count(gated, 'run')} failed a critical structural expectation and was not judged."
        unused = tally.skill_used[False]
        if name == plan.treatment and unused:
            yield f"{name}: the skill was not used in {unused} of {count(tally.runs, 'run')}."


def _about_cases(found: Statistics, margin: float) -> Iterator[str]:
    lost = (effect for effect in found.effects if effect.delta is not None and effect.delta <= -margin)
    worse = sorted(lost, key=lambda effect: effect.delta or 0.0)
    yield from _some(worse, _worse, "cases are worse with the treatment")
    unsteady = [e for e in found.effects if _widest(e) >= WIDE]
    yield from _some(unsteady, _unsteady, "cases vary as much between runs")


def _worse(effect: CaseEffect) -> str:
    one, zero = (moments.mean or 0.0 if moments else 0.0 for moments in (effect.treatment, effect.control))
    return f"Case '{_short(effect.case.facts.label)}' is worse with the treatment: {one:.2f} against {zero:.2f}."


def _widest(effect: CaseEffect) -> float:
    return max(moments.stddev if moments else 0.0 for moments in (effect.treatment, effect.control))


def _unsteady(effect: CaseEffect) -> str:
    arms = [moments for moments in (effect.treatment, effect.control) if moments]
    widest = max(arms, key=lambda moments: moments.stddev)
    spread = f"{percent(widest.mean or 0.0)} ± {percent(widest.stddev)} over {count(widest.count, 'run')}"
    return f"Case '{_short(effect.case.facts.label)}' varies a lot between runs of one arm ({spread})."


def _about_costs(found: Statistics) -> Iterator[str]:
    for name, factor in found.ratios.items():
        if factor.low is None or factor.high is None or not factor.p or factor.p > 0.05:
            continue
        change = "more" if factor.ratio > 1 else "less"
        span = f"95 % interval {factor.low:.2f} to {factor.high:.2f}, {count(factor.cases, 'case')}"
        yield f"The treatment takes {factor.ratio:.2f} times the {METRIC_WORDS[name]} ({change}; {span})."


def _about_items(items: list[Item], plan: BatchPlan) -> Iterator[str]:
    def flagged(flag: Flag) -> list[Item]:
        return [item for item in items if flag in item.flags]

    arms = (plan.treatment or "", plan.control or "")
    only = [item for item in items if item.discrimination == 1 and item.kind is not Kind.DIMENSION]
    yield from _some(only, lambda i: f"{_title(i)} passes only with the treatment ({_rates(i, arms)}).", "like it")
    yield from _some(flagged(Flag.HURTS), lambda i: f"{_title(i)} is worse with the treatment ({_rates(i, arms)}).")
    yield from _some(
        flagged(Flag.NO_SIGNAL), lambda i: f"{_title(i)} passes everywhere ({_rates(i, arms)}); it tells nothing apart."
    )
    yield from _some(
        flagged(Flag.NEVER_PASSES), lambda i: f"{_title(i)} never passes ({_rates(i, arms)}); broken or out of reach."
    )
    yield from _some(
        flagged(Flag.FLAKY), lambda i: f"{_title(i)} passes and fails in the same arm ({_rates(i, arms)})."
    )
    yield from _some(flagged(Flag.JUDGE_NOISE), _noisy)


def _noisy(item: Item) -> str:
    return f"{_title(item)} is decided differently in {percent(item.flip_rate or 0.0)} of repeated judgements."


def _title(item: Item) -> str:
    where = f" of case '{_short(item.case_label)}'" if item.case_label else ""
    return f"{item.kind.value.capitalize()} '{_short(item.text)}'{where}"


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= SHOWN_TEXT else flat[: SHOWN_TEXT - 1] + "…"


def _rates(item: Item, arms: Iterable[str]) -> str:
    shown = [name for name in arms if item.runs.get(name)] or list(item.runs)
    if item.kind is Kind.DIMENSION:
        return ", ".join(f"{name} {item.rates[name]:.1f} of 5" for name in shown)
    return ", ".join(f"{name} {item.passed.get(name, 0)} of {item.runs[name]}" for name in shown)


def _some(found: list[T], write: Callable[[T], str], others: str = "like it") -> Iterator[str]:
    """The first few, then how many more."""
    yield from map(write, islice(found, MOST_OF_A_KIND))
    if len(found) > MOST_OF_A_KIND:
        yield f"… and {len(found) - MOST_OF_A_KIND} more {others}."
