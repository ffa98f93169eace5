"""Webhooks: where a team is told that a batch ended."""

from typing import Annotated

from fastapi import APIRouter
from fastapi import Path as PathParameter

from api.access import Administrator, GuardedRoute, PartsHere
from api.documents import (
    ID_PATTERN,
    DeliveryDocument,
    DeliveryList,
    NewWebhook,
    WebhookBody,
    WebhookDocument,
    WebhookList,
)

router = APIRouter(prefix="/v1/webhooks", tags=["webhooks"], route_class=GuardedRoute)
WebhookId = Annotated[str, PathParameter(pattern=ID_PATTERN, description="The id of a webhook.")]


@router.post("", status_code=201)
def add_webhook(parts: PartsHere, caller: Administrator, body: WebhookBody) -> NewWebhook:
    """Be told when a batch ends; the secret that signs what is sent is shown this once."""
    row, secret = parts.webhooks.add(caller.team, body.url)
    return NewWebhook(id=row.id, url=row.url, created_at=row.created_at, secret=secret)


@router.get("")
def list_webhooks(parts: PartsHere, caller: Administrator) -> WebhookList:
    """List the team's webhooks."""
    rows = parts.webhooks.list(caller.team)
    return WebhookList(webhooks=[WebhookDocument(id=row.id, url=row.url, created_at=row.created_at) for row in rows])


@router.delete("/{webhook_id}", status_code=204)
def delete_webhook(parts: PartsHere, caller: Administrator, webhook_id: WebhookId) -> None:
    """Take a webhook back."""
    parts.webhooks.remove(caller.team, webhook_id)


@router.get("/{webhook_id}/deliveries")
def list_deliveries(parts: PartsHere, caller: Administrator, webhook_id: WebhookId) -> DeliveryList:
    """What became of the newest deliveries."""
    found = parts.webhooks.deliveries(caller.team, webhook_id)
    return DeliveryList(deliveries=[DeliveryDocument.model_validate(row) for row in found])
