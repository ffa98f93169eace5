"""The limiter of one process: the twin of the scripts in Redis, for the embedded default."""

import threading
import time
from bisect import insort
from collections.abc import Callable
from dataclasses import dataclass, field

from service.limits.arithmetic import FlowSeen, effective, needs, per_minute, seen_limits, window_seconds
from service.limits.port import Demand, Policy, Seen, Turn

ROUNDING = 1e-6  # three tenths are not more than 0.3


@dataclass
class Slot:
    """One request that was promised its time, and what it costs in seconds of the queue."""

    at: float
    cost: float


@dataclass
class Queue:
    """One model's queue: how long it is for each kind of limit, and who stands in it."""

    at: float = 0.0
    backlog: list[float] = field(default_factory=lambda: [0.0, 0.0, 0.0])
    learned: list[int] = field(default_factory=lambda: [0, 0, 0])
    paused_until: float = 0.0
    flows: dict[str, FlowSeen] = field(default_factory=dict)
    slots: dict[str, list[Slot]] = field(default_factory=dict)

    def advance(self, now: float) -> None:
        """Let the time pass that went by since the last look."""
        quiet = max(0.0, now - self.at)
        self.backlog = [max(0.0, seconds - quiet) for seconds in self.backlog]
        self.at = now

    def held(self, flow: str, now: float) -> list[Slot]:
        """The flow's slots whose time has not come, the next one first."""
        slots = self.slots.setdefault(flow, [])
        slots[:] = [slot for slot in slots if slot.at > now]
        return slots

    def remember(self, flow: str, seen: FlowSeen, active_seconds: float) -> None:
        """Note that a flow asked, and forget those who no longer do."""
        self.flows[flow] = seen
        quiet = [name for name, other in self.flows.items() if seen.at - other.at > active_seconds]
        for name in quiet:
            del self.flows[name]
            if not self.held(name, seen.at):
                del self.slots[name]


class MemoryLimiter:
    """A limiter shared by the threads of this process only."""

    def __init__(self, policy: Policy, clock: Callable[[], float] = time.monotonic) -> None:
        self._policy = policy
        self._clock = clock
        self._queues: dict[str, Queue] = {}
        self._lock = threading.Lock()

    def acquire(self, demand: Demand, patience_seconds: float) -> Turn:
        with self._lock:
            now = self._clock()
            queue = self._queues.setdefault(demand.model, Queue(at=now))
            seen = self._seen(demand, now)
            queue.remember(demand.flow, seen, self._policy.active_seconds)
            if queue.paused_until > now:
                return Turn(False, queue.paused_until - now)
            queue.advance(now)
            window = window_seconds(demand.flow, seen, queue.flows.items(), self._policy.horizon_seconds)
            return self._slot(queue, demand, window, patience_seconds)

    def settle(self, demand: Demand, input_tokens: int, output_tokens: int, seen: Seen | None = None) -> None:
        with self._lock:
            queue = self._queues.setdefault(demand.model, Queue(at=self._clock()))
            queue.advance(self._clock())
            configured = per_minute(self._policy.rate(demand.model))
            changes = (0, input_tokens - demand.input_tokens, output_tokens - demand.output_tokens)
            for kind, (limit, remaining) in enumerate(seen_limits(seen)):
                queue.learned[kind] = limit or queue.learned[kind]
                rate = effective(configured[kind], queue.learned[kind])
                corrected = queue.backlog[kind] + (changes[kind] * 60 / rate if rate else 0.0)
                # The provider has less left than our own burst would send: somebody else draws from the same limit.
                said = self._policy.burst_seconds - remaining * 60 / limit if limit and remaining >= 0 else 0.0
                queue.backlog[kind] = max(0.0, corrected, said)

    def pause(self, model: str, seconds: float) -> None:
        with self._lock:
            now = self._clock()
            queue = self._queues.setdefault(model, Queue(at=now))
            queue.paused_until = max(queue.paused_until, now + min(seconds, self._policy.max_pause_seconds))

    def paused_seconds(self, model: str) -> float:
        with self._lock:
            queue = self._queues.get(model)
            return max(0.0, queue.paused_until - self._clock()) if queue else 0.0

    def _seen(self, demand: Demand, now: float) -> FlowSeen:
        weight = self._policy.team_weights.get(demand.team, 1.0)
        return FlowSeen(now, self._policy.purpose_weight(demand.purpose), weight)

    def _costs(self, queue: Queue, demand: Demand) -> list[float]:
        """What the demand adds to the queue, in seconds, for each kind of limit."""
        configured = per_minute(self._policy.rate(demand.model))
        rates = [effective(ours, theirs) for ours, theirs in zip(configured, queue.learned, strict=True)]
        return [need * 60 / rate if rate else 0.0 for need, rate in zip(needs(demand), rates, strict=True)]

    def _slot(self, queue: Queue, demand: Demand, window: float, patience: float) -> Turn:
        """Give the next slot, unless the flow's window is full or the slot is too far away."""
        costs = self._costs(queue, demand)
        held = queue.held(demand.flow, queue.at)
        if held and sum(slot.cost for slot in held) + max(costs) > window + ROUNDING:
            return Turn(False, free_at(held, max(costs), window) - queue.at)
        wait = self._wait(queue, costs)
        if wait > patience:
            return Turn(False, wait - patience)
        queue.backlog = [backlog + cost for backlog, cost in zip(queue.backlog, costs, strict=True)]
        if wait > 0:
            # A correction may have shortened the queue: the newest slot is not always the last.
            insort(held, Slot(queue.at + wait, max(costs)), key=lambda slot: slot.at)
        return Turn(True, wait)

    def _wait(self, queue: Queue, costs: list[float]) -> float:
        burst = self._policy.burst_seconds
        pairs = zip(queue.backlog, costs, strict=True)
        return max([0.0, *(backlog + cost - max(burst, cost) for backlog, cost in pairs if cost)])


def free_at(held: list[Slot], cost: float, window: float) -> float:
    """When enough of a flow's slots have passed for another of this cost."""
    left = sum(slot.cost for slot in held)
    for slot in held:
        left -= slot.cost
        if left + cost <= window + ROUNDING:
            return slot.at
    return held[-1].at
