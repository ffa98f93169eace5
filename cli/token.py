"""`assay token create|list|revoke`: who may use the API."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options import Data
from service.settings import embedded_settings, load_settings

if TYPE_CHECKING:
    from pathlib import Path

    from service.bootstrap import Parts
    from service.storage.tokens import TokenRow
    from service.tokens import Scope

app = typer.Typer(help="Make, list and take back the tokens of the API.", no_args_is_help=True)


@app.command()
def create(
    team: Annotated[str, typer.Argument(help="Whom it lets in.")],
    name: Annotated[str, typer.Option(help="What people call it.")] = "",
    scope: Annotated[
        list[str] | None, typer.Option(help="submit, read or admin; may be repeated. submit and read if not said.")
    ] = None,
    days: Annotated[float | None, typer.Option(min=0.001, help="How long it is good; else until revoked.")] = None,
    data: Data = None,
) -> None:
    """Make a token and print it, this once; from then on the API needs one."""
    parts = _parts(data)
    token, token_id = parts.tokens.create(team, name or team, _scopes(scope or ["submit", "read"]), days)
    typer.echo(f"token {token_id} of {team}; it is not shown again", err=True)
    print(token)


@app.command("list")
def list_tokens(team: Annotated[str | None, typer.Option(help="Only this team's.")] = None, data: Data = None) -> None:
    """List tokens: what they begin with, whose they are, what they may, and when they were used."""
    for row in _parts(data).tokens.list(team):
        scopes, used = ",".join(row.scopes), _when(row.last_used_at)
        print(f"{row.prefix}…  {row.team:<16} {row.name:<16} {scopes:<18} {_state(row):<24} used {used}")


@app.command()
def revoke(
    token: Annotated[str, typer.Argument(help="Its id, or what it begins with (assay_1234abcd).")], data: Data = None
) -> None:
    """Take a token back; it stops working within seconds."""
    _parts(data).tokens.revoke(token)
    print(f"revoked {token}")


def _parts(data: "Path | None") -> "Parts":
    from service.bootstrap import Parts
    from service.storage.schema import migrate, require_newest

    settings = load_settings(data=data)
    parts = Parts(settings if settings.database_url else embedded_settings(data=data))
    if settings.database_url:
        require_newest(parts.store.engine)
    else:
        migrate(parts.store.engine)
    return parts


def _scopes(names: list[str]) -> "list[Scope]":
    from service.errors import BadInput
    from service.tokens import Scope

    unknown = [name for name in names if name not in set(Scope)]
    if unknown:
        raise BadInput(f"there is no scope {unknown[0]!r}; choose some of {', '.join(Scope)}")
    return [Scope(name) for name in names]


def _state(row: "TokenRow") -> str:
    if row.revoked_at is not None:
        return "revoked"
    if not row.is_valid:
        return "expired"
    return "good" if row.expires_at is None else f"good until {_when(row.expires_at)}"


def _when(seconds: float | None) -> str:
    return "never" if seconds is None else time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
