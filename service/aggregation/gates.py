"""Gates for CI: what a batch must show, and the exit code when it does not.

0  every gate is passed      1  a gate failed      2  no gate failed, but one cannot be decided

Runs that do not count must not carry a gate: where more than a tenth of an arm's runs is missing, a gate passes only if
it would also pass had every missing run gone the other way.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from service.aggregation.benchmark import Aggregates
from service.aggregation.figures import count, signed
from service.aggregation.paired import Verdict, is_not_worse
from service.aggregation.statistics import Bounds, missing_runs
from service.aggregation.words import METRIC_WORDS, NO_COMPARISON, difference_words
from service.errors import BadInput

MOST_MISSING = 0.1  # of an arm's runs; fewer cannot carry a result away


class GateState(StrEnum):
    """How a gate ended."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Gates:
    """What is asked; None and False ask nothing."""

    fail_under: float | None = None  # the treatment's mean of the verdict's metric must reach this
    min_delta: float | None = None  # the difference must reach this, with a verdict behind it
    no_regression: bool = False  # the treatment must not be worse by more than the margin
    require_verdict: Verdict | None = None

    def __post_init__(self) -> None:
        """Raise BadInput for a figure that no benchmark can be held against."""
        _check("--fail-under", self.fail_under, 0.0)
        _check("--min-delta", self.min_delta, -1.0)


def _check(name: str, value: float | None, least: float) -> None:
    # A comparison with NaN is false, so it is asked for what is right and not for what is wrong.
    if value is not None and not least <= value <= 1.0:
        raise BadInput(f"{name} {value:g} is not between {least:g} and 1; scores and their differences are shares")


@dataclass(frozen=True, slots=True)
class GateResult:
    """One gate, decided or not, with its numbers in words."""

    name: str
    state: GateState
    sentence: str


@dataclass(frozen=True, slots=True)
class GateReport:
    """All gates of a batch."""

    results: tuple[GateResult, ...]

    @property
    def exit_code(self) -> int:
        """0 passed, 1 failed, 2 undecided."""
        states = {result.state for result in self.results}
        return 1 if GateState.FAILED in states else 2 if GateState.UNDECIDED in states else 0


def judge_gates(found: Aggregates, gates: Gates) -> GateReport:
    """Decide every gate that was asked for."""
    return GateReport(tuple(_final(found, result) for result in _results(found, gates)))


def _final(found: Aggregates, result: GateResult) -> GateResult:
    if not found.plan.is_interim:
        return result
    return GateResult(result.name, GateState.UNDECIDED, f"interim: {result.sentence}")


def _results(found: Aggregates, gates: Gates) -> Iterator[GateResult]:
    if gates.fail_under is not None:
        yield _fail_under(found, gates.fail_under)
    if gates.min_delta is not None:
        yield _min_delta(found, gates.min_delta)
    if gates.no_regression:
        yield _no_regression(found)
    if gates.require_verdict is not None:
        yield _require_verdict(found, gates.require_verdict)


def _unless_missing(found: Aggregates, result: GateResult, holds: bool, words: str) -> GateResult:
    """A pass that rests on the runs that survived decides nothing; `holds` says whether it needs them."""
    missing = found.missing_runs
    if result.state is not GateState.PASSED or holds or not _are_many(found):
        return result
    told = f"{result.sentence}, but {count(missing, 'run')} missing: had they gone the other way, {words}"
    return replace(result, state=GateState.UNDECIDED, sentence=told)


def _are_many(found: Aggregates) -> bool:
    """Whether more of either arm is missing than can be overlooked."""
    arms = missing_runs(found.tallies, found.plan)
    return any(missing > MOST_MISSING * planned for missing, planned in arms.values())


def _bounded(found: Aggregates, result: GateResult, low: float = -math.inf, high: float = math.inf) -> GateResult:
    """A pass that must also hold over the whole range that the missing runs leave open."""
    bounds = found.statistics.headline.bounds if found.statistics.headline else None
    reach = bounds or Bounds(-1.0, 1.0, 0)
    words = f"the difference would lie between {signed(reach.low, 2)} and {signed(reach.high, 2)}"
    return _unless_missing(found, result, low <= reach.low and reach.high <= high, words)


def _fail_under(found: Aggregates, floor: float) -> GateResult:
    name, headline = f"--fail-under {floor:g}", found.statistics.headline
    arm = headline.arms.get(found.plan.treatment or "") if headline else None
    if headline is None or arm is None:
        return GateResult(name, GateState.UNDECIDED, "the treatment has no run that counts")
    state = GateState.PASSED if arm.mean >= floor else GateState.FAILED
    metric = METRIC_WORDS.get(headline.metric, headline.metric)
    sentence = f"{metric} of {found.plan.treatment} is {arm.mean:.3f} over {count(arm.cases, 'case')}"
    least = headline.floors.get(found.plan.treatment or "", 0.0)
    return _unless_missing(found, GateResult(name, state, sentence), least >= floor, f"it would be {least:.3f}")


def _min_delta(found: Aggregates, floor: float) -> GateResult:
    name, delta, headline = f"--min-delta {floor:g}", found.statistics.delta, found.statistics.headline
    if delta is None or headline is None:
        return GateResult(name, GateState.UNDECIDED, found.verdict_sentence)
    if delta.mean < floor:
        return GateResult(name, GateState.FAILED, f"{difference_words(headline)} is below {signed(floor, 2)}")
    if delta.verdict is Verdict.INCONCLUSIVE:
        return GateResult(name, GateState.UNDECIDED, f"{difference_words(headline)} may be chance")
    return _bounded(found, GateResult(name, GateState.PASSED, difference_words(headline)), low=floor)


def _no_regression(found: Aggregates) -> GateResult:
    name, delta, headline = "--no-regression", found.statistics.delta, found.statistics.headline
    if delta is None or headline is None:
        return GateResult(name, GateState.UNDECIDED, found.verdict_sentence)
    margin = found.plan.options.margin
    words = f"{difference_words(headline)}; a loss of {margin:g} would matter"
    if is_not_worse(delta, margin):
        return _bounded(found, GateResult(name, GateState.PASSED, words), low=-margin)
    is_loss = delta.verdict is Verdict.HURTS
    return GateResult(name, GateState.FAILED if is_loss else GateState.UNDECIDED, words)


def _require_verdict(found: Aggregates, wanted: Verdict) -> GateResult:
    name = f"--require-verdict '{wanted.value}'"
    if found.verdict == wanted.value:
        passed = GateResult(name, GateState.PASSED, found.verdict_sentence.rstrip("."))
        return _bounded(found, passed, *_reach(wanted, found.plan.options.margin))
    is_open = found.verdict in (NO_COMPARISON, Verdict.INCONCLUSIVE.value)
    return GateResult(name, GateState.UNDECIDED if is_open else GateState.FAILED, found.verdict_sentence)


def _reach(verdict: Verdict, margin: float) -> tuple[float, float]:
    """The differences that agree with a verdict; every one agrees with inconclusive."""
    reaches = {
        Verdict.HELPS: (0.0, math.inf),
        Verdict.HURTS: (-math.inf, 0.0),
        Verdict.NO_DIFFERENCE: (-margin, margin),
    }
    return reaches.get(verdict, (-math.inf, math.inf))
