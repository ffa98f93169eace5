"""Gates for CI: what a batch must show, and the exit code when it does not.

0  every gate is passed      1  a gate failed      2  no gate failed, but one cannot be decided
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from service.aggregation.benchmark import Aggregates
from service.aggregation.figures import signed
from service.aggregation.paired import Verdict, is_not_worse
from service.aggregation.words import METRIC_WORDS, NO_COMPARISON, difference_words


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


def _fail_under(found: Aggregates, floor: float) -> GateResult:
    name, headline = f"--fail-under {floor:g}", found.statistics.headline
    arm = headline.arms.get(found.plan.treatment or "") if headline else None
    if headline is None or arm is None:
        return GateResult(name, GateState.UNDECIDED, "the treatment has no run that counts")
    state = GateState.PASSED if arm.mean >= floor else GateState.FAILED
    metric = METRIC_WORDS.get(headline.metric, headline.metric)
    return GateResult(name, state, f"{metric} of {found.plan.treatment} is {arm.mean:.3f} over {arm.cases} cases")


def _min_delta(found: Aggregates, floor: float) -> GateResult:
    name, delta, headline = f"--min-delta {floor:g}", found.statistics.delta, found.statistics.headline
    if delta is None or headline is None:
        return GateResult(name, GateState.UNDECIDED, found.verdict_sentence)
    if delta.mean < floor:
        return GateResult(name, GateState.FAILED, f"{difference_words(headline)} is below {signed(floor, 2)}")
    if delta.verdict is Verdict.INCONCLUSIVE:
        return GateResult(name, GateState.UNDECIDED, f"{difference_words(headline)} may be chance")
    return GateResult(name, GateState.PASSED, difference_words(headline))


def _no_regression(found: Aggregates) -> GateResult:
    name, delta, headline = "--no-regression", found.statistics.delta, found.statistics.headline
    if delta is None or headline is None:
        return GateResult(name, GateState.UNDECIDED, found.verdict_sentence)
    margin = found.plan.options.margin
    words = f"{difference_words(headline)}; a loss of {margin:g} would matter"
    if is_not_worse(delta, margin):
        return GateResult(name, GateState.PASSED, words)
    is_loss = delta.verdict is Verdict.HURTS
    return GateResult(name, GateState.FAILED if is_loss else GateState.UNDECIDED, words)


def _require_verdict(found: Aggregates, wanted: Verdict) -> GateResult:
    name = f"--require-verdict '{wanted.value}'"
    if found.verdict == wanted.value:
        return GateResult(name, GateState.PASSED, found.verdict_sentence)
    is_open = found.verdict in (NO_COMPARISON, Verdict.INCONCLUSIVE.value)
    return GateResult(name, GateState.UNDECIDED if is_open else GateState.FAILED, found.verdict_sentence)
