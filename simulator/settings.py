"""What can be set on a simulator."""

from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Settings:
    """How the simulator behaves; all of it can be changed while it runs by POST /control/settings."""

    seed: int = 0
    latency_seconds: tuple[float, float] = (0.0, 0.0)  # every answer waits a time drawn from this range
    requests_per_minute: int | None = None  # above it: 429 with retry-after
    tokens_per_minute: int | None = None  # only told in the headers
    batch_seconds: float = 0.0  # how long a message batch is in progress
    cache_minimum_tokens: int = 1024  # shorter prefixes are silently not cached
    context_window_tokens: int = 200_000
    keep_requests: int = 500  # how many recent requests /control/requests can show
    script: dict[str, Any] = field(default_factory=dict)

    def changed(self, values: dict[str, Any]) -> "Settings":
        """The same settings with some values replaced; raises ValueError for a name that does not exist."""
        unknown = sorted(set(values) - set(self.__dataclass_fields__))
        if unknown:
            raise ValueError(f"unknown setting: {', '.join(unknown)}")
        if "latency_seconds" in values:
            values = {**values, "latency_seconds": as_range(values["latency_seconds"])}
        return replace(self, **values)


def as_range(value: Any) -> tuple[float, float]:
    """A latency given as one number or as [least, most]."""
    if isinstance(value, int | float):
        return (float(value), float(value))
    least, most = value
    return (float(least), float(most))
