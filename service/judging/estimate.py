"""What a batch will take before it is started: calls, tokens, money, and what it could find out.

Nobody knows beforehand how often an agent calls tools or how much it writes. So everything is a range, from what was
seen of small and of large runs; a batch's own history, where there is one, is better.
"""

from dataclasses import dataclass

from schemas.kinds import Dialect
from schemas.suite import Case, Suite
from service.aggregation.paired import smallest_detectable
from service.judging.material import JudgeMaterial
from service.judging.questions import needs_judge, questions_of
from service.judging.request import CHARS_PER_TOKEN, TOKENS_PER_QUESTION, case_text, instructions
from service.judging.settings import JudgeSettings
from service.models.port import Tokens
from service.models.prices import Prices

# An executor's run: turns, and what each adds to what the model reads again in the next one.
TURNS = (2, 25)
FIRST_TURN_TOKENS = (3_000, 12_000)  # harness, tools, skill and prompt
ADDED_TOKENS_PER_TURN = (400, 2_500)
OUTPUT_TOKENS_PER_TURN = (150, 900)
# A judgement: transcript and outputs, and the words of the answer.
MATERIAL_TOKENS = (1_500, 60_000)
OUTPUT_TOKENS = (300, 1_500)  # besides the questions
OUTPUT_TOKENS_PER_QUESTION = (40, TOKENS_PER_QUESTION)
REPAIRED_SHARE = 0.03
MOST_CASES = 500  # that are looked at one by one
# Scores from 0 to 1: how cases differ in what a skill does for them, and how runs of one case scatter.
CASE_VARIANCE = 0.015
RUN_VARIANCE = 0.035
SPREAD = 2.0  # the variance may be half or twice that


@dataclass(frozen=True)
class Design:
    """What is to be run."""

    runs_per_eval: int
    arms: int
    executor_model: str | None = None  # None: an external command; what it uses is not known
    judge: JudgeSettings | None = None
    half_price: bool = False


@dataclass(frozen=True)
class Range:
    """From the least to the most that is likely."""

    low: float
    high: float

    def plus(self, other: "Range") -> "Range":
        """Both together."""
        return Range(self.low + other.low, self.high + other.high)

    def times(self, factor: float) -> "Range":
        """So many of it."""
        return Range(self.low * factor, self.high * factor)

    def by(self, other: "Range") -> "Range":
        """The least by the least, the most by the most."""
        return Range(self.low * other.low, self.high * other.high)


@dataclass(frozen=True)
class Share:
    """What one role takes; cost is None when a model's price is not known."""

    calls: Range
    input_tokens: Range
    output_tokens: Range
    cost_usd: Range | None


@dataclass(frozen=True)
class Estimate:
    """What a batch will take, and the smallest true difference it would find four times out of five."""

    cases: int
    runs: int
    execute: Share | None  # None: an external command executes
    judge: Share | None  # None: nothing to judge, or nobody to judge it
    detectable: Range | None  # None: one arm, or fewer than two cases

    @property
    def cost_usd(self) -> Range | None:
        """All of it; None when a part is not known."""
        shares = [share.cost_usd for share in (self.execute, self.judge) if share is not None]
        known = [cost for cost in shares if cost is not None]
        if not known or len(known) < len(shares):
            return None
        total = Range(0.0, 0.0)
        for cost in known:
            total = total.plus(cost)
        return total


def estimate(suite: Suite, dialect: Dialect, design: Design, prices: Prices) -> Estimate:
    """The estimate of a batch."""
    runs_per_case = design.runs_per_eval * design.arms
    runs = len(suite.cases) * runs_per_case
    execute = execution(runs, design.executor_model, prices) if design.executor_model else None
    judged = [case for case in suite.cases if needs_judge(case)]
    judge = judging(judged, dialect, runs_per_case, design, prices) if judged and design.judge else None
    return Estimate(len(suite.cases), runs, execute, judge, detectable(len(suite.cases), design))


def execution(runs: int, model: str, prices: Prices) -> Share:
    """What the executor's calls take: each turn reads all before it, most of it from the cache."""
    ends = [turns_of(end) for end in (0, 1)]
    costs = [known_sum([prices.cost(model, turn) for turn in turns]) for turns in ends]
    return Share(
        Range(*TURNS).times(runs),
        Range(*(sum(prompt_of(turn) for turn in turns) for turns in ends)).times(runs),
        Range(*(sum(turn.output for turn in turns) for turns in ends)).times(runs),
        priced(costs, runs),
    )


def turns_of(end: int) -> list[Tokens]:
    """The calls of a small (0) or a large (1) run, one by one: the price of a long prompt holds for one call."""
    first, added, output = FIRST_TURN_TOKENS[end], ADDED_TOKENS_PER_TURN[end], OUTPUT_TOKENS_PER_TURN[end]
    later = [
        Tokens(output=output, cache_read=first + added * turn, cache_write=added) for turn in range(TURNS[end] - 1)
    ]
    return [Tokens(output=output, cache_write=first), *later]


def prompt_of(tokens: Tokens) -> int:
    """All that goes in."""
    return tokens.input + tokens.cache_read + tokens.cache_write


def judging(cases: list[Case], dialect: Dialect, runs_per_case: int, design: Design, prices: Prices) -> Share:
    """What the judges' calls take: every seat, the sample that is judged again, and a few repairs."""
    assert design.judge is not None
    repeats = runs_per_case * (1 + design.judge.rejudge_share)
    seats = repeats * len(design.judge.models)
    # A very large suite is estimated from some of its cases: a submit must not take long for it.
    some = cases[:: -(-len(cases) // MOST_CASES)]
    each = len(cases) / len(some)
    ends = [[one_judgement(case, dialect, end) for case in some] for end in (0, 1)]
    costs = [
        known_sum(
            [judgement_cost(prices, model, tokens, design, end) for model in design.judge.models for tokens in of]
        )
        for end, of in enumerate(ends)
    ]
    with_repairs = Range(1.0, 1.0 + REPAIRED_SHARE)
    return Share(
        with_repairs.times(len(cases) * seats),
        Range(*(sum(map(prompt_of, of)) for of in ends)).by(with_repairs).times(seats * each),
        Range(*(sum(tokens.output for tokens in of) for of in ends)).by(with_repairs).times(seats * each),
        priced(costs, repeats * each),
    )


def judgement_cost(prices: Prices, model: str, tokens: Tokens, design: Design, end: int) -> float | None:
    """What one judgement costs; in a dear one (1) some are repaired, which is never done at half the price."""
    once, repair = prices.cost(model, tokens, "batch" if design.half_price else "direct"), prices.cost(model, tokens)
    if once is None or repair is None:
        return None
    return once + repair * REPAIRED_SHARE * end


def one_judgement(case: Case, dialect: Dialect, end: int) -> Tokens:
    """The tokens of one judgement of a small (0) or a large (1) run; at the best its prefix comes from the cache."""
    material = JudgeMaterial(case, dialect)
    questions = questions_of(case, material.wants_conventions)
    prefix = int(len(instructions(material) + case_text(case, questions)) / CHARS_PER_TOKEN)
    asked = len(questions.statements) + len(questions.criteria) + len(questions.dimensions)
    output = OUTPUT_TOKENS[end] + OUTPUT_TOKENS_PER_QUESTION[end] * asked
    cached = {"cache_write": prefix} if end else {"cache_read": prefix}
    return Tokens(input=MATERIAL_TOKENS[end], output=output, **cached)


def priced(costs: list[float | None], times: float) -> Range | None:
    """A range of costs; None when a price is not known."""
    known = [cost for cost in costs if cost is not None]
    return Range(known[0], known[-1]).times(times) if len(known) == len(costs) else None


def known_sum(costs: list[float | None]) -> float | None:
    """The sum; None when one of them is not known."""
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


def detectable(cases: int, design: Design) -> Range | None:
    """The smallest true difference of scores (0 to 1) that the design would find, for steady and for scattered runs."""
    if design.arms < 2:
        return None
    variance = CASE_VARIANCE + 2 * RUN_VARIANCE / design.runs_per_eval
    low, high = (smallest_detectable(variance * factor, cases) for factor in (1 / SPREAD, SPREAD))
    return Range(low, high) if low is not None and high is not None else None
