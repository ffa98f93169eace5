"""The ledger in the database: one row per call to a model, and sums over them."""

from typing import Any

from sqlalchemy import Engine, func, insert, select

from service.storage.clock import Now
from service.storage.engine import alone
from service.storage.tables import model_calls

# One row per call to a model, so built once.
_ADD = insert(model_calls).values(created_at=Now())
_KINDS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


class LedgerRows:
    """The rows of model calls."""

    def __init__(self, engine: Engine) -> None:
        self._engine = alone(engine)

    def add(self, row: dict[str, Any]) -> None:
        """Write one call down."""
        with self._engine.begin() as connection:
            connection.execute(_ADD, row)

    def spent_by_batch(self, batch_id: str) -> tuple[float, int]:
        """Money and tokens of a batch so far."""
        return self._sum(model_calls.c.batch_id == batch_id)

    def spent_by_team(self, team_id: str, since: float, until: float) -> tuple[float, int]:
        """Money and tokens of a team in a time."""
        in_time = (model_calls.c.created_at >= since, model_calls.c.created_at < until)
        return self._sum(model_calls.c.team_id == team_id, *in_time)

    def _sum(self, *conditions: Any) -> tuple[float, int]:
        first, *others = (func.coalesce(model_calls.c[kind], 0) for kind in _KINDS)
        all_kinds = sum(others, first)
        tokens = func.coalesce(func.sum(all_kinds), 0)
        query = select(func.coalesce(func.sum(model_calls.c.cost_usd), 0.0), tokens).where(*conditions)
        with self._engine.begin() as connection:
            cost, used = connection.execute(query).one()
        return float(cost), int(used)
