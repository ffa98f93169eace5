"""The gate: bounded waiting, and one 429 that stops everybody."""

import threading
from dataclasses import dataclass, field

import pytest

from service.limits.gate import Gate
from service.limits.memory import MemoryLimiter
from service.limits.port import Demand, Policy, Purpose, Rate, RetryLater

DEMAND = Demand("m", "team", Purpose.JUDGE)


@dataclass
class Time:
    """A clock that sleeping moves; things can be planned to happen meanwhile."""

    now: float = 100.0
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def gate_at(time: Time, per_minute: int, patience: float = 20.0) -> Gate:
    limiter = MemoryLimiter(Policy(default_rate=Rate(requests=per_minute), burst_seconds=0.0), time)
    return Gate(limiter, patience, time.sleep, time)


def test_requests_leave_at_the_limiters_pace() -> None:
    time = Time()
    gate = gate_at(time, per_minute=60)

    left = []
    for _ in range(4):
        gate.enter(DEMAND)
        left.append(time.now)

    assert left == pytest.approx([100, 101, 102, 103], abs=0.01)


def test_a_wait_beyond_the_patience_hands_the_worker_back_with_the_time() -> None:
    time = Time()
    gate = gate_at(time, per_minute=1, patience=5.0)
    gate.enter(DEMAND)

    with pytest.raises(RetryLater) as later:
        gate.enter(DEMAND)

    assert later.value.seconds == pytest.approx(55.0, abs=0.1)
    assert time.slept == []


def test_what_was_waited_is_counted_by_model_and_taken_once_in_vain_or_not() -> None:
    time = Time()
    gate = gate_at(time, per_minute=6, patience=15.0)
    gate.enter(DEMAND)
    gate.enter(DEMAND)  # ten seconds later
    with pytest.raises(RetryLater):
        gate.enter(DEMAND, patience_seconds=1.0)

    assert gate.take_waited("other") == 0.0
    assert gate.take_waited("m") == pytest.approx(10.0, abs=0.1)
    assert gate.take_waited("m") == 0.0


def test_a_pause_that_begins_while_a_request_sleeps_holds_it_too() -> None:
    time = Time()
    gate = gate_at(time, per_minute=60)
    gate.enter(DEMAND)
    plain_sleep = time.sleep

    def sleep_and_meet_a_429(seconds: float) -> None:
        if not time.slept:
            gate.limiter.pause("m", 7.0)
        plain_sleep(seconds)

    gate.sleep = sleep_and_meet_a_429
    gate.enter(DEMAND)

    assert time.now >= 107.0


def test_a_pause_longer_than_the_patience_hands_the_worker_back() -> None:
    time = Time()
    gate = gate_at(time, per_minute=600, patience=10.0)
    gate.limiter.pause("m", 60.0)

    with pytest.raises(RetryLater) as later:
        gate.enter(DEMAND)

    assert later.value.seconds == pytest.approx(60.0)


def test_threads_share_one_queue() -> None:
    limiter = MemoryLimiter(Policy(default_rate=Rate(requests=60_000)))
    gate = Gate(limiter, 30.0)
    done: list[int] = []

    def work() -> None:
        for _ in range(25):
            gate.enter(DEMAND)
            done.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(done) == 200
