"""Webhooks and what they have to tell, in the database."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, Row, exists, insert, select, update
from sqlalchemy.exc import IntegrityError

from schemas.states import BatchState
from service.storage.clock import Now
from service.storage.rows import new_id
from service.storage.tables import batches, deliveries, teams, webhooks

# Ends that nobody told within a day are history.
_OLDEST_SECONDS = 86_400.0
_PAGE = 100


@dataclass(frozen=True)
class WebhookRow:
    """Somewhere a team wants to be told."""

    id: str
    url: str
    created_at: float


@dataclass(frozen=True)
class Delivery:
    """One end of a batch, to be told to one webhook."""

    id: str
    url: str
    secret: str
    team: str
    batch_id: str
    ended_at: float
    attempts: int  # with the one that is made now


class WebhookRows:
    """The rows of webhooks and deliveries."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, team_id: str, url: str, secret: str) -> WebhookRow:
        """A new webhook."""
        new = {"id": new_id(), "team_id": team_id, "url": url, "secret": secret}
        with self._engine.begin() as connection:
            row = connection.execute(insert(webhooks).values(**new, created_at=Now()).returning(*webhooks.c)).one()
        return _webhook(row)

    def of_team(self, team_id: str) -> list[WebhookRow]:
        """A team's webhooks, oldest first."""
        query = select(webhooks).where(webhooks.c.team_id == team_id, webhooks.c.deleted_at.is_(None))
        with self._engine.begin() as connection:
            return [_webhook(row) for row in connection.execute(query.order_by(webhooks.c.id))]

    def remove(self, team_id: str, webhook_id: str) -> bool:
        """Take a webhook back; False if the team has none of that id."""
        mine = (webhooks.c.id == webhook_id, webhooks.c.team_id == team_id, webhooks.c.deleted_at.is_(None))
        waiting = update(deliveries).where(deliveries.c.webhook_id == webhook_id, deliveries.c.state == "due")
        with self._engine.begin() as connection:
            if connection.execute(update(webhooks).where(*mine).values(deleted_at=Now())).rowcount != 1:
                return False
            connection.execute(waiting.values(state="given_up", error="the webhook was deleted"))
        return True

    def deliveries(self, webhook_id: str, limit: int = 50) -> list[dict[str, Any]]:
        """What became of the newest deliveries."""
        query = select(deliveries).where(deliveries.c.webhook_id == webhook_id)
        with self._engine.begin() as connection:
            rows = connection.execute(query.order_by(deliveries.c.id.desc()).limit(limit))
            return [dict(row._mapping) for row in rows]

    def find_new(self) -> int:
        """Write a delivery for every end of a batch that a webhook was not told yet; gives their number."""
        told = exists().where(
            deliveries.c.webhook_id == webhooks.c.id,
            deliveries.c.batch_id == batches.c.id,
            deliveries.c.ended_at == batches.c.finished_at,
        )
        ended = batches.c.state.in_((BatchState.FINISHED, BatchState.CANCELLED))
        since = (batches.c.finished_at >= webhooks.c.created_at, batches.c.finished_at > Now() - _OLDEST_SECONDS)
        query = (
            select(webhooks.c.id.label("webhook_id"), batches.c.id.label("batch_id"), batches.c.finished_at)
            .join(batches, batches.c.team_id == webhooks.c.team_id)
            .where(webhooks.c.deleted_at.is_(None), ended, *since, ~told)
            .limit(_PAGE)
        )
        with self._engine.begin() as connection:
            found = connection.execute(query).all()
        return sum(self._add_delivery(row) for row in found)

    def _add_delivery(self, row: Any) -> bool:
        new = {"id": new_id(), "webhook_id": row.webhook_id, "batch_id": row.batch_id, "ended_at": row.finished_at}
        try:
            with self._engine.begin() as connection:
                connection.execute(insert(deliveries).values(**new, state="due", not_before=Now(), created_at=Now()))
        except IntegrityError:  # another process saw it, too
            return False
        return True

    def claim(self, lease_seconds: float, without: Sequence[str] = ()) -> Delivery | None:
        """Take one delivery that is due, but of some teams; nobody else tries it before the lease is over."""
        left_out = select(webhooks.c.id).join(teams, teams.c.id == webhooks.c.team_id).where(teams.c.name.in_(without))
        due = (
            deliveries.c.state == "due",
            deliveries.c.not_before <= Now(),
            *([deliveries.c.webhook_id.not_in(left_out)] if without else []),
        )
        next_id = select(deliveries.c.id).where(*due).order_by(deliveries.c.not_before).limit(1).scalar_subquery()
        statement = (
            update(deliveries)
            .where(deliveries.c.id == next_id, *due)
            .values(not_before=Now() + lease_seconds, attempts=deliveries.c.attempts + 1)
            .returning(*deliveries.c)
        )
        with self._engine.begin() as connection:
            row = connection.execute(statement).one_or_none()
            if row is None:
                return None
            columns = (webhooks.c.url, webhooks.c.secret, teams.c.name)
            query = select(*columns).join(teams, teams.c.id == webhooks.c.team_id)
            to = connection.execute(query.where(webhooks.c.id == row.webhook_id)).one()
        return Delivery(row.id, to.url, to.secret, to.name, row.batch_id, row.ended_at, row.attempts)

    def save(self, delivery: Delivery, error: str | None, again_in_seconds: float | None) -> None:
        """What the attempt came to: taken, to be tried again, or given up; unless another attempt was begun since."""
        values: dict[str, Any] = {"error": error, "state": "given_up"}
        if error is None:
            values = {"error": None, "state": "delivered", "delivered_at": Now()}
        elif again_in_seconds is not None:
            values = {"error": error, "not_before": Now() + again_in_seconds}
        mine = (deliveries.c.id == delivery.id, deliveries.c.attempts == delivery.attempts, deliveries.c.state == "due")
        with self._engine.begin() as connection:
            connection.execute(update(deliveries).where(*mine).values(**values))


def _webhook(row: Row[Any]) -> WebhookRow:
    return WebhookRow(row.id, row.url, row.created_at)
