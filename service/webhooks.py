"""Telling others that a batch ended: signed, tried again with growing pauses, never to a private address unasked."""

import hashlib
import hmac
import http.client
import ipaddress
import json
import re
import secrets
import socket
import ssl
import threading
import time
from typing import Any
from urllib.parse import SplitResult, urlsplit

from sqlalchemy.exc import DBAPIError

from service import log
from service.errors import BadInput, NotFound, Unavailable
from service.settings import Settings
from service.storage.store import Store, database_errors
from service.storage.webhooks import Delivery, WebhookRow, WebhookRows

MOST = 20  # webhooks of a team
_TRIES = 8
_TIMEOUT_SECONDS = 10.0
_LEASE_SECONDS = 60.0
_LONGEST_PAUSE = 3_600.0
_LABEL = re.compile("[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.IGNORECASE)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_ENDING_IN_IPV4 = [ipaddress.ip_network(one) for one in ("::/96", "::ffff:0:0/96", "64:ff9b::/96")]
# NAT64 of a site's own choice, and site-local: Python calls some of these global.
_NEVER = [ipaddress.ip_network(one) for one in ("64:ff9b:1::/48", "fec0::/10")]


class Webhooks:
    """A team's webhooks, and their deliveries."""

    def __init__(self, settings: Settings, store: Store) -> None:
        self._settings = settings
        self._store = store
        self._rows = WebhookRows(store.engine)

    def add(self, team: str, url: str) -> tuple[WebhookRow, str]:
        """A new webhook and the secret that signs what it gets, shown this once."""
        split_url(url)
        secret = f"whsec_{secrets.token_urlsafe(32)}"
        with database_errors():
            team_id = self._store.teams.named(team).id
            if len(self._rows.of_team(team_id)) >= MOST:
                raise BadInput(f"a team has at most {MOST} webhooks; delete one first")
            return self._rows.add(team_id, url, secret), secret

    def list(self, team: str) -> list[WebhookRow]:
        """A team's webhooks."""
        with database_errors():
            return self._rows.of_team(self._store.teams.named(team).id)

    def remove(self, team: str, webhook_id: str) -> None:
        """Take one back."""
        with database_errors():
            if not self._rows.remove(self._store.teams.named(team).id, webhook_id):
                raise NotFound(f"there is no webhook {webhook_id}")

    def deliveries(self, team: str, webhook_id: str) -> Any:
        """What became of its newest deliveries."""
        with database_errors():
            if webhook_id not in {row.id for row in self._rows.of_team(self._store.teams.named(team).id)}:
                raise NotFound(f"there is no webhook {webhook_id}")
            return self._rows.deliveries(webhook_id)

    def deliver_due(self) -> int:
        """Find ends nobody was told about and tell what is due; gives the number of attempts. Safe to run twice."""
        with database_errors():
            self._rows.find_new()
        attempts = 0
        while delivery := self._claim():
            self._attempt(delivery)
            attempts += 1
        return attempts

    def _claim(self) -> Delivery | None:
        with database_errors():
            return self._rows.claim(_LEASE_SECONDS)

    def _attempt(self, delivery: Delivery) -> None:
        error = self._try(delivery)
        again = None if delivery.attempts >= _TRIES else min(_LONGEST_PAUSE, 5.0 * 4 ** (delivery.attempts - 1))
        with database_errors():
            self._rows.save(delivery.id, error, again)
        facts = {"delivery": delivery.id, "batch": delivery.batch_id, "attempt": delivery.attempts}
        if error is None:
            log.info("webhook delivered", **facts)
        else:
            log.warning("webhook not delivered", **facts, reason=error, again_in=again)

    def _try(self, delivery: Delivery) -> str | None:
        """What went wrong this time; nothing is sent when all tries are spent, as after processes that died with it."""
        if delivery.attempts > _TRIES:
            return f"none of {_TRIES} attempts came to an end"
        try:
            return send(delivery, self._payload(delivery), self._settings.webhook_private)
        except (Unavailable, DBAPIError):
            raise
        except Exception as error:  # noqa: BLE001  one receiver must not stand in the way of all others
            log.error("webhook broke", with_traceback=True, delivery=delivery.id, batch=delivery.batch_id)
            return f"something broke: {type(error).__name__}"

    def _payload(self, delivery: Delivery) -> bytes:
        with database_errors():
            batch = self._store.batches.one(delivery.batch_id)
            progress = self._store.batches.progress(delivery.batch_id)
        body = {
            "event": "batch.ended",
            "delivery_id": delivery.id,
            "team": delivery.team,
            "batch": {
                "id": delivery.batch_id,
                "state": batch.state if batch else None,
                "runs": progress.total,
                "outcomes": progress.outcomes,
                "ended_at": delivery.ended_at,
            },
        }
        return json.dumps(body).encode()


class Courier:
    """Delivers in a thread of its own, again and again; several processes share the work."""

    def __init__(self, webhooks: Webhooks, every_seconds: float = 2.0) -> None:
        self._webhooks = webhooks
        self._every_seconds = every_seconds
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="courier", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the delivery that runs."""
        self._stop.set()
        self._thread.join(_TIMEOUT_SECONDS)

    def _run(self) -> None:
        while not self._stop.wait(self._every_seconds):
            try:
                self._webhooks.deliver_due()
            except (Unavailable, DBAPIError) as error:
                log.warning("webhooks wait", reason=str(error).splitlines()[0])
            except Exception:  # noqa: BLE001  the loop must outlive anything one delivery meets
                log.error("webhooks broke, trying again", with_traceback=True)


def split_url(url: str) -> SplitResult:
    """The parts of an address a webhook may have; a clear refusal otherwise."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadInput(f"{url!r} is no address; use https://host/path") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None or port == 0:
        raise BadInput(f"{url!r} cannot be a webhook; use https://host/path without a user name")
    if not url.isascii() or any(letter.isspace() or ord(letter) < 32 for letter in url):
        raise BadInput(f"{url!r} has characters no address has; write them in percent or punycode form")
    if ":" not in parts.hostname and not all(_LABEL.fullmatch(label) for label in parts.hostname.split(".")):
        raise BadInput(f"{parts.hostname!r} is no name of a host; between its dots stand 1 to 63 letters and digits")
    return parts


def allowed_address(host: str, port: int, private_too: bool) -> str:
    """An address of the host that may be told; looked up once and then used, so that it cannot change in between."""
    try:
        found = {str(entry[4][0]) for entry in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)}
    except (OSError, UnicodeError) as error:
        raise BadInput(f"{host} has no address: {getattr(error, 'strerror', None) or error}") from error
    private = sorted(address for address in found if not _is_public(address))
    if private and not private_too:
        raise BadInput(f"{host} is the private address {private[0]}; set ASSAY_WEBHOOK_PRIVATE to allow that")
    return sorted(found)[0]


def _is_public(address: str) -> bool:
    known = ipaddress.ip_address(address.partition("%")[0])
    if any(known in network for network in _NEVER):
        return False
    return all(one.is_global and not one.is_multicast for one in (known, *_inside(known)))


def _inside(known: Address) -> list[ipaddress.IPv4Address]:
    """The IPv4 address that an IPv6 address leads to, if it does: mapped, compatible, NAT64 or 6to4."""
    if isinstance(known, ipaddress.IPv4Address):
        return []
    last = ipaddress.IPv4Address(int(known) & 0xFFFF_FFFF)
    found = [last] if any(known in network for network in _ENDING_IN_IPV4) else []
    return [*found, known.sixtofour] if known.sixtofour else found


def signature(secret: str, when: int, body: bytes) -> str:
    """What a receiver computes to know that it was us, and when."""
    mac = hmac.new(secret.encode(), f"{when}.".encode() + body, hashlib.sha256).hexdigest()
    return f"t={when},v1={mac}"


def send(delivery: Delivery, body: bytes, private_too: bool) -> str | None:
    """One attempt; gives what went wrong, None if the receiver took it. Redirects are not followed."""
    when = int(time.time())
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "assay-webhook",
        "Assay-Delivery": delivery.id,
        "Assay-Signature": signature(delivery.secret, when, body),
    }
    try:
        parts = split_url(delivery.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        address = allowed_address(parts.hostname or "", port, private_too)
        status = _post(parts, (address, port), body, headers)
    except (BadInput, OSError, ValueError, http.client.HTTPException) as error:
        return (str(error) or type(error).__name__)[:500]
    return None if 200 <= status < 300 else f"the receiver answered {status}"


def _post(parts: SplitResult, to: tuple[str, int], body: bytes, headers: dict[str, str]) -> int:
    connection = http.client.HTTPConnection(parts.hostname or "", to[1], timeout=_TIMEOUT_SECONDS)
    with socket.create_connection(to, timeout=_TIMEOUT_SECONDS) as plain:
        connection.sock = plain
        if parts.scheme == "https":
            context = ssl.create_default_context()
            connection.sock = context.wrap_socket(plain, server_hostname=parts.hostname)
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        host = parts.netloc.rpartition("@")[2]
        connection.request("POST", path, body, {**headers, "Host": host})
        status = connection.getresponse().status
        connection.close()
    return status
