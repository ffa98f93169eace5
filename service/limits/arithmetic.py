"""The limiter's sums, as plain functions: what a demand costs, how long it waits, how wide a window is."""

from collections.abc import Iterable
from dataclasses import dataclass

from service.limits.port import Demand, Rate, Seen


@dataclass(frozen=True)
class FlowSeen:
    """When a flow last asked, and how much it weighs."""

    at: float
    purpose_weight: float
    team_weight: float


def per_minute(rate: Rate) -> tuple[int, int, int]:
    """The three limits of a rate; 0 is none."""
    return (rate.requests or 0, rate.input_tokens or 0, rate.output_tokens or 0)


def needs(demand: Demand) -> tuple[int, int, int]:
    """What a demand takes of each limit."""
    return (1, demand.input_tokens, demand.output_tokens)


def seen_limits(seen: Seen | None) -> tuple[tuple[int, int], ...]:
    """Limit and remaining of each kind as the provider said them; 0 and -1 where it said nothing."""
    said = seen or Seen()
    pairs = (
        (said.requests_limit, said.requests_remaining),
        (said.input_tokens_limit, said.input_tokens_remaining),
        (said.output_tokens_limit, said.output_tokens_remaining),
    )
    return tuple((limit or 0, -1 if remaining is None else remaining) for limit, remaining in pairs)


def effective(configured: int, learned: int) -> int:
    """The stricter of our own limit and the provider's; 0 when neither is known."""
    return min(configured, learned) if configured and learned else configured or learned


def purpose_of(flow: str) -> str:
    """The purpose in a flow's name."""
    return flow.partition(":")[0]


def window_seconds(flow: str, asking: FlowSeen, others: Iterable[tuple[str, FlowSeen]], horizon: float) -> float:
    """How much of the queue a flow may hold while all of `others` (itself among them) ask."""
    purposes: dict[str, float] = {}
    teams = 0.0
    for name, seen in others:
        purposes[purpose_of(name)] = seen.purpose_weight
        teams += seen.team_weight if purpose_of(name) == purpose_of(flow) else 0.0
    return horizon * asking.purpose_weight / sum(purposes.values()) * asking.team_weight / teams
