"""Who may do what: bearer tokens of teams, kept as digests, with scopes, an end, and a way to take them back."""

import hashlib
import secrets
import threading
import time
from dataclasses import dataclass
from enum import StrEnum

from service import log
from service.errors import BadInput, NotFound
from service.storage.store import Store, database_errors
from service.storage.tokens import TokenRow, TokenRows

_KNOWN_SECONDS = 5.0  # how long a revoked token may still be remembered as good
_MOST_KNOWN = 1_000
MARK = "assay"


class Scope(StrEnum):
    """What a token may."""

    SUBMIT = "submit"  # start, stop and retry batches, upload skills, write reviews
    READ = "read"  # look at everything of the team
    ADMIN = "admin"  # webhooks of the team, figures of the installation


class Unauthorized(BadInput):
    """No token, or one that lets nobody in."""


class Forbidden(BadInput):
    """The token is good, but not for this."""


@dataclass(frozen=True)
class Caller:
    """Who asks."""

    team: str
    scopes: frozenset[Scope]
    token_id: str | None = None  # None: nobody needs a token here
    prefix: str | None = None  # of the token, as `assay token list` shows it

    def require(self, scope: Scope) -> None:
        """Refuse what the token is not good for."""
        if scope not in self.scopes:
            held = ", ".join(sorted(self.scopes)) or "none"
            raise Forbidden(f"this needs a token with the scope {scope}; yours has {held}")


class TokenDesk:
    """Makes, lists, takes back and recognises tokens."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._rows = TokenRows(store.engine)
        self._known: dict[str, tuple[float, TokenRow]] = {}
        self._lock = threading.Lock()
        self._are_needed = False
        self._looked_at = float("-inf")

    def create(self, team: str, name: str, scopes: list[Scope], days: float | None) -> tuple[str, str]:
        """A new token and its id; the token is shown this once."""
        if not scopes:
            raise BadInput("a token without a scope lets nobody in; choose some of submit, read, admin")
        prefix = f"{MARK}_{secrets.token_hex(4)}"
        token = f"{prefix}_{secrets.token_urlsafe(32)}"
        new = {"name": name, "prefix": prefix, "digest": _digest(token), "scopes": sorted(set(scopes))}
        with database_errors():
            token_id = self._rows.add(self._store.teams.named(team).id, new, days)
        log.info("token created", team=team, prefix=prefix)
        return token, token_id

    def list(self, team: str | None = None) -> list[TokenRow]:
        """The tokens of a team, or of everybody."""
        with database_errors():
            return self._rows.all(self._store.teams.named(team).id if team else None)

    def revoke(self, name: str) -> None:
        """Take back a token by its id or prefix; it stops working within seconds."""
        with database_errors():
            if not self._rows.revoke(name):
                raise NotFound(f"there is no token {name} that could be revoked; see `assay token list`")
        log.info("token revoked", token=name)

    def are_needed(self) -> bool:
        """Whether a token was ever made: before that, whoever reaches the API is let in."""
        if not self._are_needed and time.monotonic() - self._looked_at > 1.0:
            with database_errors():
                self._are_needed = self._rows.exist()
            self._looked_at = time.monotonic()
        return self._are_needed

    def recognise(self, token: str) -> Caller:
        """Whose token this is; refused alike whether it is unknown, expired or revoked."""
        row = self._find(_digest(token))
        if row is None or not row.is_valid or (row.expires_at is not None and row.expires_at < time.time()):
            raise Unauthorized("the token is unknown, expired or revoked; make another with `assay token create`")
        return Caller(row.team, frozenset(Scope(scope) for scope in row.scopes), row.id, row.prefix)

    def _find(self, digest: str) -> TokenRow | None:
        """By the database, or by what it said a moment ago: every request asks."""
        now = time.monotonic()
        with self._lock:
            known = self._known.get(digest)
        if known and now - known[0] < _KNOWN_SECONDS:
            return known[1]
        with database_errors():
            row = self._rows.by_digest(digest)
            if row is not None and row.is_valid:
                self._rows.touch(row.id)
        with self._lock:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            if row is not None:
                self._known[digest] = (now, row)
        return row


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
