"""Telling others that a batch ended: signed, tried again with growing pauses, never to a private address unasked."""

import hashlib
import hmac
import http.client
import io
import ipaddress
import json
import re
import secrets
import socket
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit

from sqlalchemy.exc import DBAPIError

from service import log
from service.errors import BadInput, NotFound, Unavailable
from service.settings import Settings
from service.storage.store import Store, database_errors
from service.storage.webhooks import Delivery, WebhookRow, WebhookRows

MOST = 20  # webhooks of a team
_TRIES = 8
_DEADLINE_SECONDS = 10.0  # of a whole attempt: lookup, connection, request and answer
_LEASE_SECONDS = 60.0  # far more than the deadline, so that nobody else sends what is still being sent
_AT_ONCE = 8  # attempts under way in this process
_AT_ONCE_OF_A_TEAM = 3  # so that slow receivers of one team leave room for the others
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
        self._lock = threading.Lock()
        self._under_way: Counter[str] = Counter()

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
        """Tell all that is due, one after the other; gives the number of attempts. Safe to run twice."""
        self.find()
        attempts = 0
        while delivery := self.next_due():
            self.attempt(delivery)
            attempts += 1
        return attempts

    def find(self) -> None:
        """Write down every end that nobody was told about."""
        with database_errors():
            self._rows.find_new()

    def next_due(self) -> Delivery | None:
        """Take one delivery that is due, of a team that has not too many under way; to be given to `attempt`."""
        with self._lock, database_errors():
            busy = [team for team, number in self._under_way.items() if number >= _AT_ONCE_OF_A_TEAM]
            delivery = self._rows.claim(_LEASE_SECONDS, busy)
            if delivery is not None:
                self._under_way[delivery.team] += 1
            return delivery

    def attempt(self, delivery: Delivery) -> None:
        """Tell it, and write down what came of it."""
        try:
            self._write_down(delivery, self._try(delivery))
        finally:
            with self._lock:
                self._under_way[delivery.team] -= 1

    def _write_down(self, delivery: Delivery, error: str | None) -> None:
        again = None if delivery.attempts >= _TRIES else min(_LONGEST_PAUSE, 5.0 * 4 ** (delivery.attempts - 1))
        with database_errors():
            self._rows.save(delivery, error, again)
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
    """Delivers in threads of its own, some at once, again and again; several processes share the work."""

    def __init__(self, webhooks: Webhooks, every_seconds: float = 2.0) -> None:
        self._webhooks = webhooks
        self._every_seconds = every_seconds
        self._is_stopped = False
        self._wake = threading.Event()
        self._room = threading.Semaphore(_AT_ONCE)
        self._thread = threading.Thread(target=self._run, name="courier", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """End after the deliveries that run."""
        self._is_stopped = True
        self._wake.set()
        until = time.monotonic() + _DEADLINE_SECONDS
        self._thread.join(_DEADLINE_SECONDS)
        for _ in range(_AT_ONCE):
            self._room.acquire(timeout=max(0.0, until - time.monotonic()))

    def _run(self) -> None:
        while not self._is_stopped:
            self._wake.wait(self._every_seconds)
            self._wake.clear()
            if not self._is_stopped:
                _surviving(self._round)

    def _round(self) -> None:
        """Begin whatever is due, as long as there is room; an attempt that ends begins the next round."""
        self._webhooks.find()
        while not self._is_stopped and self._room.acquire(blocking=False):
            delivery = None
            try:
                delivery = self._webhooks.next_due()
            finally:
                if delivery is None:
                    self._room.release()
            if delivery is None:
                return
            threading.Thread(target=self._carry, args=[delivery], name="courier-attempt", daemon=True).start()

    def _carry(self, delivery: Delivery) -> None:
        _surviving(lambda: self._webhooks.attempt(delivery))
        self._room.release()
        self._wake.set()


def _surviving(act: Callable[[], None]) -> None:
    """Whatever one delivery meets, the next one is tried."""
    try:
        act()
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


def send(delivery: Delivery, body: bytes, private_too: bool, deadline_seconds: float = _DEADLINE_SECONDS) -> str | None:
    """One attempt; gives what went wrong, None if the receiver took it. Redirects are not followed."""
    until = time.monotonic() + deadline_seconds
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
        status = _post(parts, (address, port), (body, headers), until)
    except TimeoutError:
        return f"the receiver had not answered after {deadline_seconds:g} s"
    except (BadInput, OSError, ValueError, http.client.HTTPException) as error:
        return (str(error) or type(error).__name__)[:500]
    return None if 200 <= status < 300 else f"the receiver answered {status}"


def _post(parts: SplitResult, to: tuple[str, int], sent: tuple[bytes, dict[str, str]], until: float) -> int:
    """The status of the answer; TimeoutError once it is too late, however little comes at a time."""
    body, headers = sent
    connection = http.client.HTTPConnection(parts.hostname or "", to[1])
    with socket.create_connection(to, timeout=_left(until)) as plain:
        connection.sock = plain
        if parts.scheme == "https":
            plain.settimeout(_left(until))
            connection.sock = ssl.create_default_context().wrap_socket(plain, server_hostname=parts.hostname)
        with connection.sock:
            connection.sock.settimeout(_left(until))
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request("POST", path, body, {**headers, "Host": parts.netloc.rpartition("@")[2]})
            answer = http.client.HTTPResponse(cast(socket.socket, _Hearing(connection.sock, until)), method="POST")
            answer.begin()
            return answer.status


def _left(until: float) -> float:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class _Hearing(io.RawIOBase):
    """A socket read with one deadline for everything: its own timeout begins anew with every byte that comes."""

    def __init__(self, heard: socket.socket, until: float) -> None:
        self._heard = heard
        self._until = until

    def makefile(self, _mode: str) -> io.BufferedReader:
        """What the reader of answers asks of a socket."""
        return io.BufferedReader(self)

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Some bytes, while there is time."""
        self._heard.settimeout(_left(self._until))
        return self._heard.recv_into(buffer)
