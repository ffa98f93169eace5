"""How much of what there is, counted for those who run the installation."""

from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine, func, select

from service.storage.tables import attempts, batches, model_calls, runs, tokens


@dataclass(frozen=True)
class Figures:
    """How much of what there is."""

    runs: dict[tuple[str, str], int] = field(default_factory=dict)  # stage, outcome
    batches: dict[str, int] = field(default_factory=dict)
    attempts: dict[tuple[str, str], int] = field(default_factory=dict)  # stage, result
    calls: list[dict[str, Any]] = field(default_factory=list)  # by purpose and model
    queues: dict[str, int] = field(default_factory=dict)
    tokens: int = 0


def count(engine: Engine, queues: dict[str, int]) -> Figures:
    """Count everything, in one transaction."""
    kinds = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    sums = [func.coalesce(func.sum(model_calls.c[kind]), 0).label(kind) for kind in kinds]
    sums += [
        func.coalesce(func.sum(model_calls.c.cost_usd), 0.0).label("cost_usd"),
        func.coalesce(func.sum(model_calls.c.seconds), 0.0).label("seconds"),
        func.coalesce(func.sum(model_calls.c.waited_seconds), 0.0).label("waited_seconds"),
        func.coalesce(func.sum(model_calls.c.attempts), 0).label("requests"),
        func.count(model_calls.c.error).label("errors"),
        func.count().label("calls"),
    ]
    group = (model_calls.c.purpose, model_calls.c.model)
    with engine.begin() as connection:

        def pairs(*columns: Any) -> Any:
            return connection.execute(select(*columns, func.count()).group_by(*columns)).all()

        return Figures(
            runs={(stage, outcome or ""): number for stage, outcome, number in pairs(runs.c.stage, runs.c.outcome)},
            batches=dict(map(tuple, pairs(batches.c.state))),
            attempts={(stage, result): number for stage, result, number in pairs(attempts.c.stage, attempts.c.result)},
            calls=[dict(row._mapping) for row in connection.execute(select(*group, *sums).group_by(*group))],
            queues=queues,
            tokens=int(connection.execute(select(func.count()).select_from(tokens)).scalar_one()),
        )
