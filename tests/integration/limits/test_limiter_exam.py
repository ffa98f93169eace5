"""The exam of limiters: what both the fleet's and the process's own must do, on a clock that the test turns."""

import heapq
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from redis import Redis

from service.limits.memory import MemoryLimiter
from service.limits.port import Demand, Limiter, Policy, Purpose, Rate, Seen
from service.limits.shared import RedisLimiter

MODEL = "judge-model"
PATIENCE = 30.0


@dataclass
class Clock:
    """Time that stands still until somebody moves it."""

    now: float = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class World:
    """Processes full of clients that ask, wait and ask again, without a thread or a second of real time.

    As at the gate, one client of a process asks at a time; who is refused keeps its place at the front.
    """

    limiter: Limiter
    clock: Clock
    events: list[tuple[float, int, int]] = field(default_factory=list)  # when, order, process
    demands: list[Demand] = field(default_factory=list)  # by process
    idle: list[int] = field(default_factory=list)  # clients of a process that want to ask
    asking: list[bool] = field(default_factory=list)  # whether a process has an asker under way
    sent: list[tuple[float, Demand]] = field(default_factory=list)
    order: int = 0

    def clients(self, count: int, demand: Demand, start: float = 0.0) -> None:
        self.demands.append(demand)
        self.idle.append(0)
        self.asking.append(False)
        for _ in range(count):
            self._at(self.clock() + start, len(self.demands) - 1)

    def run(self, seconds: float) -> None:
        end = self.clock() + seconds
        while self.events and self.events[0][0] <= end:
            self.clock.now, order, process = heapq.heappop(self.events)
            self._wake(process, is_asker=order < 0)
        self.clock.now = end

    def _wake(self, process: int, is_asker: bool) -> None:
        self.asking[process] &= not is_asker
        self.idle[process] += not is_asker
        while self.idle[process] and not self.asking[process]:
            turn = self.limiter.acquire(self.demands[process], PATIENCE)
            if not turn.granted:
                self.asking[process] = True
                self._at(self.clock() + max(turn.seconds, 0.005), process, asker=True)
                return
            self.idle[process] -= 1
            self.sent.append((self.clock() + turn.seconds, self.demands[process]))
            self._at(self.clock() + turn.seconds + 0.01, process)

    def _at(self, when: float, process: int, asker: bool = False) -> None:
        self.order += 1
        heapq.heappush(self.events, (when, -self.order if asker else self.order, process))

    def rate_per_minute(self, start: float, end: float, chosen: Callable[[Demand], bool] = lambda _: True) -> float:
        sent = sum(1 for at, demand in self.sent if start <= at < end and chosen(demand))
        return sent * 60 / (end - start)


Make = Callable[[Policy], World]


@pytest.fixture(params=["memory", "redis"])
def make(request: pytest.FixtureRequest) -> Iterator[Make]:
    clock = Clock()
    if request.param == "memory":
        yield lambda policy: World(MemoryLimiter(policy, clock), clock)
        return
    with Redis.from_url(request.getfixturevalue("redis_url")) as redis:
        yield lambda policy: World(RedisLimiter(redis, policy, clock=clock), clock)


def judging(team: str = "a", **tokens: int) -> Demand:
    return Demand(MODEL, team, Purpose.JUDGE, **tokens)


def executing(team: str = "a") -> Demand:
    return Demand(MODEL, team, Purpose.EXECUTE)


def requests(per_minute: int, **knobs: float) -> Policy:
    return Policy(default_rate=Rate(requests=per_minute), **knobs)  # type: ignore[arg-type]


def test_the_rate_is_kept_within_a_percent_and_used_to_the_full(make: Make) -> None:
    world = make(requests(600))
    world.clients(40, judging())
    start = world.clock()

    world.run(60)

    assert world.rate_per_minute(start + 5, start + 55) == pytest.approx(600, rel=0.01)


def test_no_minute_sees_more_than_the_limit_and_one_burst(make: Make) -> None:
    world = make(requests(600, burst_seconds=1.0))
    world.clients(40, judging())

    world.run(90)

    times = sorted(at for at, _ in world.sent)
    assert max(sum(1 for other in times if at <= other < at + 60) for at in times[::50]) <= 600 + 10 + 1


def test_a_quiet_model_answers_at_once(make: Make) -> None:
    world = make(requests(60))

    assert world.limiter.acquire(judging(), 0.0).seconds == 0.0


def test_two_teams_get_equal_rates_however_many_clients_each_has(make: Make) -> None:
    world = make(requests(600))
    world.clients(45, judging("many"))
    world.clients(15, judging("few"), start=3.0)
    start = world.clock()

    world.run(120)

    few = world.rate_per_minute(start + 20, start + 110, lambda demand: demand.team == "few")
    many = world.rate_per_minute(start + 20, start + 110, lambda demand: demand.team == "many")
    assert few == pytest.approx(300, rel=0.05)
    assert many == pytest.approx(300, rel=0.05)


def test_a_team_with_twice_the_weight_gets_twice_the_rate(make: Make) -> None:
    world = make(Policy(default_rate=Rate(requests=600), team_weights={"heavy": 2.0}))
    world.clients(50, judging("heavy"))
    world.clients(50, judging("light"))
    start = world.clock()

    world.run(90)

    served = Counter(demand.team for at, demand in world.sent if start + 15 <= at < start + 85)
    assert served["heavy"] / served["light"] == pytest.approx(2.0, rel=0.1)


def test_judging_gets_its_share_while_executions_flood_the_model(make: Make) -> None:
    world = make(requests(600, judge_share=0.3))
    world.clients(100, executing())
    world.clients(100, judging(), start=5.0)
    start = world.clock()

    world.run(120)

    judged = world.rate_per_minute(start + 20, start + 110, lambda demand: demand.purpose is Purpose.JUDGE)
    assert judged == pytest.approx(180, rel=0.1)
    assert world.rate_per_minute(start + 20, start + 110) == pytest.approx(600, rel=0.02)


def test_a_share_nobody_uses_is_not_kept_free(make: Make) -> None:
    world = make(requests(600, judge_share=0.3))
    world.clients(50, executing())
    start = world.clock()

    world.run(60)

    assert world.rate_per_minute(start + 5, start + 55) == pytest.approx(600, rel=0.01)


def test_tokens_limit_as_requests_do(make: Make) -> None:
    world = make(Policy(default_rate=Rate(requests=6000, input_tokens=60_000, output_tokens=6_000)))
    world.clients(20, judging(input_tokens=500, output_tokens=100))
    start = world.clock()

    world.run(120)

    # 60 requests a minute: the output tokens are what is short
    assert world.rate_per_minute(start + 10, start + 110) == pytest.approx(60, rel=0.05)


def test_a_demand_larger_than_the_burst_still_passes(make: Make) -> None:
    world = make(Policy(default_rate=Rate(input_tokens=1_000)))

    assert world.limiter.acquire(judging(input_tokens=5_000), 0.0).granted
    assert not world.limiter.acquire(judging(input_tokens=1), 0.0).granted


def test_counted_tokens_replace_the_guess(make: Make) -> None:
    world = make(Policy(default_rate=Rate(output_tokens=6_000), burst_seconds=1.0))
    demand = judging(output_tokens=6_000)
    world.limiter.acquire(demand, 0.0)
    assert world.limiter.acquire(demand, PATIENCE).granted is False

    world.limiter.settle(demand, input_tokens=0, output_tokens=50)

    assert world.limiter.acquire(judging(output_tokens=10), 0.0).granted


def test_an_answer_longer_than_guessed_slows_the_next_one(make: Make) -> None:
    world = make(Policy(default_rate=Rate(output_tokens=6_000), burst_seconds=1.0))
    demand = judging(output_tokens=10)
    world.limiter.acquire(demand, 0.0)

    world.limiter.settle(demand, input_tokens=0, output_tokens=1_000)

    assert world.limiter.acquire(judging(output_tokens=100), PATIENCE).seconds == pytest.approx(10.0, abs=0.1)


def test_the_providers_lower_limit_wins_over_ours(make: Make) -> None:
    world = make(requests(6_000))
    world.limiter.settle(judging(), 0, 0, Seen(requests_limit=60, requests_remaining=60))
    world.clients(20, judging())
    start = world.clock()

    world.run(60)

    assert world.rate_per_minute(start + 5, start + 55) == pytest.approx(60, rel=0.05)


def test_the_providers_higher_limit_does_not_raise_ours(make: Make) -> None:
    world = make(requests(60))
    world.limiter.settle(judging(), 0, 0, Seen(requests_limit=6_000, requests_remaining=6_000))
    world.clients(20, judging())
    start = world.clock()

    world.run(60)

    assert world.rate_per_minute(start + 5, start + 55) == pytest.approx(60, rel=0.05)


def test_a_model_without_a_limit_waits_only_when_the_provider_names_one(make: Make) -> None:
    world = make(Policy())
    assert all(world.limiter.acquire(judging(), 0.0).granted for _ in range(200))

    world.limiter.settle(judging(), 0, 0, Seen(requests_limit=60, requests_remaining=0))

    assert world.limiter.acquire(judging(), PATIENCE).seconds > 0


def test_when_somebody_else_emptied_the_limit_we_do_not_send_a_burst(make: Make) -> None:
    world = make(requests(600, burst_seconds=5.0))

    world.limiter.settle(judging(), 0, 0, Seen(requests_limit=600, requests_remaining=0))

    assert world.limiter.acquire(judging(), PATIENCE).seconds == pytest.approx(0.1, abs=0.01)


def test_a_pause_holds_everybody_of_that_model_and_nobody_else(make: Make) -> None:
    world = make(requests(600))
    other = Demand("other-model", "a", Purpose.JUDGE)

    world.limiter.pause(MODEL, 7.0)

    turn = world.limiter.acquire(executing("b"), PATIENCE)
    assert not turn.granted
    assert turn.seconds == pytest.approx(7.0, abs=0.01)
    assert world.limiter.acquire(other, 0.0).granted
    world.clock.now += 7.1
    assert world.limiter.acquire(executing("b"), 0.0).granted


def test_a_shorter_pause_does_not_end_a_longer_one(make: Make) -> None:
    world = make(requests(600))

    world.limiter.pause(MODEL, 20.0)
    world.limiter.pause(MODEL, 1.0)

    assert world.limiter.paused_seconds(MODEL) == pytest.approx(20.0, abs=0.01)


def test_a_provider_cannot_stop_us_for_a_day(make: Make) -> None:
    world = make(requests(600, max_pause_seconds=60.0))

    world.limiter.pause(MODEL, 86_400.0)

    assert world.limiter.paused_seconds(MODEL) == pytest.approx(60.0, abs=0.01)


def test_a_slot_farther_than_the_patience_is_not_taken(make: Make) -> None:
    world = make(requests(6, burst_seconds=0.0))
    assert world.limiter.acquire(judging("a"), 0.0).granted

    refused = world.limiter.acquire(judging("b"), 2.0)

    assert not refused.granted
    assert refused.seconds == pytest.approx(8.0, abs=0.01)
    world.clock.now += 10
    assert world.limiter.acquire(judging("b"), 0.0).granted


def test_both_limiters_give_the_same_answers_to_the_same_questions(redis_url: str) -> None:
    clock, dice = Clock(), random.Random(7)
    policy = Policy(default_rate=Rate(requests=300, input_tokens=90_000, output_tokens=30_000), team_weights={"b": 3.0})
    with Redis.from_url(redis_url) as redis:
        twins: list[Limiter] = [MemoryLimiter(policy, clock), RedisLimiter(redis, policy, clock=clock)]
        for _ in range(2_000):
            clock.now = round(clock.now + dice.choice([0.01, 0.05, 0.3]) * dice.random(), 6)
            ours, theirs = _same_question(twins, dice)
            assert ours == pytest.approx(theirs, abs=1e-3)


def _same_question(twins: list[Limiter], dice: random.Random) -> list[tuple[float, float]]:
    purpose = dice.choice(list(Purpose))
    tokens = {"input_tokens": dice.randrange(600), "output_tokens": dice.randrange(200)}
    demand = Demand(MODEL, dice.choice("abc"), purpose, **tokens)
    patience, counted, kind = dice.uniform(0, 10), dice.randrange(400), dice.random()
    remaining = dice.randrange(300)
    answers = []
    for limiter in twins:
        if kind < 0.2:
            limiter.settle(demand, counted, counted, Seen(requests_limit=250, requests_remaining=remaining))
        elif kind < 0.21:
            limiter.pause(MODEL, 1.5)
        turn = limiter.acquire(demand, patience)
        answers.append((float(turn.granted), turn.seconds))
    return answers
