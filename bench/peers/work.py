"""The work that all contenders get: N cases, each one executor call and one judge call on the Messages API."""

from dataclasses import dataclass
from typing import Any

EXECUTOR, JUDGE = "simulated", "simulated-judge"
STATEMENT = "The answer says that the harbour is open"
ANSWER = "The harbour is open; nothing else is known about it."


@dataclass(frozen=True)
class Work:
    """One measurement's worth of it."""

    cases: int
    latency: str  # seconds, or least,most
    concurrency: int  # most model calls at once, for everybody

    @property
    def mean_latency(self) -> float:
        """Seconds of a call, on average."""
        ends = [float(end) for end in self.latency.split(",")]
        return sum(ends) / len(ends)

    @property
    def ideal_seconds(self) -> float:
        """How long it takes when nothing but the model costs time."""
        return self.cases * 2 * self.mean_latency / self.concurrency

    def prompts(self) -> list[str]:
        """Every case asks something else: no answer can be had from a cache."""
        return [f"Harbour number {number}: is it open? Answer in one sentence." for number in range(1, self.cases + 1)]


def plain_script(verdict: str) -> dict[str, Any]:
    """A simulator for the peers: whoever is asked about the statement is the judge, and says this."""
    return {"plain": [{"match": {"contains": STATEMENT}, "text": verdict}, {"text": ANSWER}]}


def agent_script() -> dict[str, Any]:
    """A simulator for Assay: its agent answers at once, without tools; its judge goes by the request."""
    return {"agent": [{"turns": [{"text": ANSWER}]}]}
