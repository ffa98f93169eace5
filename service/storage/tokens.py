"""Tokens in the database: found by their digest, never by their text."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, Row, insert, or_, select, update

from service.storage.clock import Now
from service.storage.rows import new_id
from service.storage.tables import teams, tokens

# A token that is shown a hundred times a second is written down once a minute.
_USE_SECONDS = 60.0


@dataclass(frozen=True)
class TokenRow:
    """A token as its owners see it; the token itself is not kept."""

    id: str
    team: str
    name: str
    prefix: str
    scopes: tuple[str, ...]
    created_at: float
    expires_at: float | None
    revoked_at: float | None
    last_used_at: float | None
    is_valid: bool


class TokenRows:
    """The rows of tokens."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, team_id: str, new: dict[str, Any], days: float | None) -> str:
        """Keep a token's digest; gives its id."""
        token_id = new_id()
        expires = None if days is None else Now() + days * 86_400
        row = insert(tokens).values(id=token_id, team_id=team_id, created_at=Now(), expires_at=expires, **new)
        with self._engine.begin() as connection:
            connection.execute(row)
        return token_id

    def by_digest(self, digest: str) -> TokenRow | None:
        """The token with this digest, valid or not."""
        with self._engine.begin() as connection:
            row = connection.execute(_query().where(tokens.c.digest == digest)).one_or_none()
        return _token(row) if row else None

    def all(self, team_id: str | None = None) -> list[TokenRow]:
        """The tokens of a team, or of everybody; oldest first."""
        query = _query() if team_id is None else _query().where(tokens.c.team_id == team_id)
        with self._engine.begin() as connection:
            return [_token(row) for row in connection.execute(query.order_by(tokens.c.id))]

    def exist(self) -> bool:
        """Whether a token was ever made; a revoked one counts, so that taking back the last one opens nothing."""
        with self._engine.begin() as connection:
            return connection.execute(select(tokens.c.id).limit(1)).one_or_none() is not None

    def revoke(self, name: str) -> int:
        """Take back the token of that id or prefix; gives how many there were."""
        named = or_(tokens.c.id == name, tokens.c.prefix == name)
        statement = update(tokens).where(named, tokens.c.revoked_at.is_(None))
        with self._engine.begin() as connection:
            return connection.execute(statement.values(revoked_at=Now())).rowcount

    def touch(self, token_id: str) -> None:
        """Write down that it was used, at most once a minute."""
        stale = or_(tokens.c.last_used_at.is_(None), tokens.c.last_used_at < Now() - _USE_SECONDS)
        with self._engine.begin() as connection:
            connection.execute(update(tokens).where(tokens.c.id == token_id, stale).values(last_used_at=Now()))


def _query() -> Any:
    unexpired = or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > Now())
    is_valid = (tokens.c.revoked_at.is_(None) & unexpired).label("is_valid")
    return select(tokens, teams.c.name.label("team"), is_valid).join(teams, teams.c.id == tokens.c.team_id)


def _token(row: Row[Any]) -> TokenRow:
    times = (row.created_at, row.expires_at, row.revoked_at, row.last_used_at)
    return TokenRow(row.id, row.team, row.name, row.prefix, tuple(row.scopes), *times, bool(row.is_valid))
