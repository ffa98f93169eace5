"""The limiter of a fleet: three scripts in Redis, each atomic, on the Redis server's clock."""

from collections.abc import Callable
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from service.errors import Unavailable
from service.limits.arithmetic import needs, per_minute, seen_limits
from service.limits.port import Demand, Policy, Seen, Turn

if TYPE_CHECKING:
    from redis import Redis

IDLE_SECONDS = 600  # what nobody touched for so long is forgotten


def script_text(name: str) -> str:
    """The text of a script that lies beside this file."""
    return (files(__package__) / name).read_text(encoding="utf-8")


class RedisLimiter:
    """A limiter shared by every process that uses the same Redis and prefix."""

    def __init__(
        self, redis: "Redis", policy: Policy, prefix: str = "assay", clock: Callable[[], float] | None = None
    ) -> None:
        """`clock` is for tests; without it the server's own clock counts, so that no worker's clock matters."""
        self._policy = policy
        self._prefix = prefix
        self._clock = clock
        self._slots = redis.register_script(script_text("slots.lua"))
        self._settle = redis.register_script(script_text("settle.lua"))
        self._pause = redis.register_script(script_text("pause.lua"))

    def acquire(self, demand: Demand, patience_seconds: float) -> Turn:
        policy = self._policy
        weights = (policy.purpose_weight(demand.purpose), policy.team_weights.get(demand.team, 1.0))
        times = (patience_seconds, policy.burst_seconds, policy.horizon_seconds, policy.active_seconds)
        facts = [*per_minute(policy.rate(demand.model)), *needs(demand)]
        arguments = [demand.flow, *weights, *times, self._lifetime, *facts]
        own = [self._key(demand.model, part) for part in ("seen", f"slots:{demand.flow}", "held")]
        granted, seconds = self._run(self._slots, [self._key(demand.model, "queue"), *own], arguments)
        return Turn(bool(granted), float(seconds))

    def settle(self, demand: Demand, input_tokens: int, output_tokens: int, seen: Seen | None = None) -> None:
        configured = per_minute(self._policy.rate(demand.model))
        changes = (0, input_tokens - demand.input_tokens, output_tokens - demand.output_tokens)
        kinds = zip(configured, changes, seen_limits(seen), strict=True)
        facts = [value for rate, change, said in kinds for value in (rate, change, *said)]
        arguments = [self._policy.burst_seconds, self._lifetime, *facts]
        self._run(self._settle, [self._key(demand.model, "queue")], arguments)

    def pause(self, model: str, seconds: float) -> None:
        capped = min(seconds, self._policy.max_pause_seconds)
        self._run(self._pause, [self._key(model, "queue")], [capped, self._lifetime])

    def paused_seconds(self, model: str) -> float:
        return float(self._run(self._pause, [self._key(model, "queue")], [0, self._lifetime]))

    @property
    def _lifetime(self) -> int:
        return int((IDLE_SECONDS + self._policy.max_pause_seconds) * 1000)

    def _key(self, model: str, part: str) -> str:
        # The braces keep all keys of a model on one node of a Redis cluster.
        return f"{self._prefix}:limits:{{{model}}}:{part}"

    def _run(self, script: Any, keys: list[str], arguments: list[Any]) -> Any:
        from redis.exceptions import RedisError

        now = "" if self._clock is None else f"{self._clock():.6f}"
        try:
            return script(keys=keys, args=[now, *arguments])
        except RedisError as error:
            raise Unavailable(f"the limiter's redis does not answer: {error}; check its address") from error
