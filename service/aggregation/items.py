"""Which of the suite's own checks are worth having: rate per arm, discrimination and flags, per item.

An item is one expectation or criterion of one case, or one rubric dimension over all cases.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from schemas.base import CaseId
from schemas.grading import Grading
from service.aggregation.moments import Moments
from service.aggregation.permutation import Counts, benjamini_hochberg, passes_differ, scores_differ
from service.aggregation.records import CaseFacts, RunRecord
from service.aggregation.scores import TOP_SCORE, Decision, Kind, is_passed

MOST_ITEMS = 500  # per case; a judge that rewords its expectations every time would otherwise fill the memory
FEW_RUNS = 4  # fewer runs agree by chance
CLEAR_LOSS = 0.6  # a drop of the pass rate that nobody would overlook, such as 1 of 3 against 3 of 3
CLEAR_POINTS = 1.0  # the same for a dimension, in points of 5
UNSTEADY = 0.2  # an arm that passes at least this often and fails at least this often is flaky
NOISY = 0.1  # a judge that changes its mind more often than this is part of the problem
FALSE_DISCOVERY = 0.05
_MODULUS = 2**61 - 1


class Flag(StrEnum):
    """What is odd about an item."""

    NO_SIGNAL = "no signal"  # passes in every run of both arms
    NEVER_PASSES = "never passes"  # fails in every run of both arms
    HURTS = "hurts"  # passes less often with the skill
    FLAKY = "flaky"  # the same arm passes and fails, more than the judge's own noise explains
    JUDGE_NOISE = "judge noise"  # the judge decides the same output differently
    REDUNDANT = "redundant"  # decides exactly as another item in every run


class ItemTally:
    """What is kept of one expectation or criterion of one case."""

    __slots__ = ("decision", "fingerprint", "flips", "passed", "rejudged", "runs")

    def __init__(self, decision: Decision) -> None:
        self.decision = decision
        self.passed: Counter[str] = Counter()
        self.runs: Counter[str] = Counter()
        self.fingerprint = 0  # of all its verdicts in order: equal only for items that always agree
        self.rejudged = 0
        self.flips = 0

    def add(self, configuration: str, passed: bool | None) -> None:
        """Take in one run's verdict; undecided is no verdict."""
        self.fingerprint = (self.fingerprint * 1_000_003 + (0 if passed is None else 1 + passed)) % _MODULUS
        if passed is not None:
            self.runs[configuration] += 1
            self.passed[configuration] += passed

    @property
    def flip_rate(self) -> float | None:
        """How often a second judgement of the same output disagreed; None when there was none."""
        return self.flips / self.rejudged if self.rejudged else None


def note_decisions(items: dict[tuple[str, str], ItemTally], configuration: str, decisions: Iterable[Decision]) -> int:
    """Add a run's decisions to its case's items; returns how many found no room."""
    overflow = 0
    for decision in decisions:
        item = items.get(decision.key)
        if item is None and len(items) >= MOST_ITEMS:
            overflow += 1
            continue
        if item is None:
            item = items[decision.key] = ItemTally(decision)
        item.add(configuration, decision.passed)
    return overflow


def note_rejudged(items: Mapping[tuple[str, str], ItemTally], record: RunRecord) -> None:
    """Compare further judgements of the same outputs with the one that counts."""
    first = dict(_judged(record.grading)) if record.grading else {}
    for grading in record.rejudged:
        for key, passed in _judged(grading):
            item, before = items.get(key), first.get(key)
            if item is not None and before is not None and passed is not None:
                item.rejudged += 1
                item.flips += before != passed


def _judged(grading: Grading) -> Iterator[tuple[tuple[str, str], bool | None]]:
    """Statements and criteria of a grading, by the keys of their items."""
    for one in grading.expectations or ():
        yield (Kind.STATEMENT, one.text if one.id is None else f"{one.id}: {one.text}"), one.passed
    for result in grading.results or ():
        yield (Kind.CRITERION, result.criterion), is_passed(result)


@dataclass(frozen=True, slots=True)
class Item:
    """One check: its numbers and what they say about it."""

    kind: Kind
    text: str
    runs: Mapping[str, int]  # decided runs per configuration
    rates: Mapping[str, float]  # pass rate per configuration; for a dimension the mean score
    discrimination: float | None  # treatment minus control
    p: float | None
    case_id: CaseId | None = None  # None for a dimension, which spans cases
    case_label: str | None = None
    id: CaseId | None = None
    critical: bool | None = None
    passed: Mapping[str, int] = field(default_factory=dict)
    spreads: Mapping[str, float] = field(default_factory=dict)  # of a dimension: stddev within a case
    flip_rate: float | None = None
    redundant_with: tuple[str, ...] = ()
    q: float | None = None
    flags: tuple[Flag, ...] = ()

    @property
    def is_certain(self) -> bool:
        """Whether its discrimination survives the control of false discoveries."""
        return self.q is not None and self.q <= FALSE_DISCOVERY


Arms = tuple[str | None, str | None]  # treatment, control


def case_items(facts: CaseFacts, tallies: Mapping[tuple[str, str], ItemTally], arms: Arms) -> Iterator[Item]:
    """The expectations and criteria of one case, not yet flagged."""
    twins = _twins(tallies)
    for tally in tallies.values():
        decision, name = tally.decision, _name(tally.decision)
        rates = {configuration: tally.passed[configuration] / runs for configuration, runs in tally.runs.items()}
        yield Item(
            decision.kind,
            decision.text,
            dict(tally.runs),
            rates,
            _difference(rates, arms),
            _p(tally, arms),
            facts.id,
            facts.label,
            decision.id,
            decision.critical,
            dict(tally.passed),
            flip_rate=tally.flip_rate,
            redundant_with=tuple(other for other in twins.get(tally.fingerprint, ()) if other != name),
        )


def _difference(rates: Mapping[str, float], arms: Arms) -> float | None:
    one, zero = (rates.get(arm) if arm is not None else None for arm in arms)
    return None if one is None or zero is None else one - zero


def _p(tally: ItemTally, arms: Arms) -> float | None:
    one, zero = arms
    if one is None or zero is None:
        return None
    return passes_differ(tally.passed[one], tally.runs[one], tally.passed[zero], tally.runs[zero])


def _twins(tallies: Mapping[tuple[str, str], ItemTally]) -> dict[int, list[str]]:
    """Names by fingerprint; items that never vary would all look alike and are left out."""
    twins: dict[int, list[str]] = {}
    for tally in tallies.values():
        runs, passed = tally.runs.total(), tally.passed.total()
        if runs >= FEW_RUNS and 0 < passed < runs:
            twins.setdefault(tally.fingerprint, []).append(_name(tally.decision))
    return twins


def _name(decision: Decision) -> str:
    return decision.text if decision.id is None else str(decision.id)


def dimension_item(
    name: str,
    pooled: Mapping[str, Moments],
    strata: Sequence[Mapping[str, Counts]],
    spreads: Mapping[str, float],
    arms: Arms,
) -> Item:
    """One rubric dimension over all cases, not yet flagged; strata are score counts per case and configuration."""
    rates = {configuration: moments.mean for configuration, moments in pooled.items() if moments.mean is not None}
    runs = {configuration: moments.count for configuration, moments in pooled.items()}
    one, zero = arms
    pairs = [(s.get(one or "", {}), s.get(zero or "", {})) for s in strata]
    p = None if one is None or zero is None else scores_differ(pairs)
    return Item(Kind.DIMENSION, name, runs, rates, _difference(rates, arms), p, spreads=spreads)


def flagged(items: Sequence[Item]) -> list[Item]:
    """The items with false discoveries controlled over all of them, and flagged."""
    qs = iter(benjamini_hochberg([item.p for item in items if item.p is not None]))
    known = [item if item.p is None else replace(item, q=next(qs)) for item in items]
    return [replace(item, flags=tuple(_flags(item))) for item in known]


def _flags(item: Item) -> Iterator[Flag]:
    is_dimension = item.kind is Kind.DIMENSION
    best, worst, clear = (TOP_SCORE, 1, CLEAR_POINTS) if is_dimension else (1, 0, CLEAR_LOSS)
    seen = set(item.rates.values())
    if seen == {best} and item.discrimination is not None:
        yield Flag.NO_SIGNAL
    if seen == {worst}:
        yield Flag.NEVER_PASSES
    if _is_harmful(item, clear):
        yield Flag.HURTS
    if _is_flaky(item):
        yield Flag.FLAKY
    if (item.flip_rate or 0.0) > NOISY:
        yield Flag.JUDGE_NOISE
    if item.redundant_with:
        yield Flag.REDUNDANT


def _is_harmful(item: Item, clear: float) -> bool:
    loss = -(item.discrimination or 0.0)
    return loss > 0 and (item.is_certain or loss >= clear)


def _is_flaky(item: Item) -> bool:
    if item.kind is Kind.DIMENSION:
        return any(spread >= CLEAR_POINTS for spread in item.spreads.values())
    return any(min(rate, 1 - rate) - (item.flip_rate or 0.0) >= UNSTEADY for rate in item.rates.values())
