"""Whom a command talks to: a server, by --server, ASSAY_SERVER or the client file; else the data folder."""

import tomllib
from pathlib import Path

from cli.desk import Desk
from service.errors import BadInput
from service.settings import Settings, embedded_settings, load_settings


def open_desk(server: str | None, data: Path | None) -> Desk:
    """The desk to ask; a data folder that is named goes before a server that is only set."""
    settings = load_settings(data=data)
    filed = _filed(settings) if data is None else {}
    address = server or (None if data else settings.server or filed.get("server"))
    if address:
        from cli.client import Client

        token = settings.token.get_secret_value() if settings.token else _token_for(address, filed)
        return Client(address, token)
    from cli.local import open_local

    return open_local(settings if settings.database_url else embedded_settings(data=data))


def _token_for(address: str, filed: dict[str, str]) -> str | None:
    """The client file's token, which no other server than the file's own gets to see."""
    own = filed.get("server", address)
    return filed.get("token") if own.rstrip("/") == address.rstrip("/") else None


def _filed(settings: Settings) -> dict[str, str]:
    """server and token as the client file has them."""
    path = settings.client_file.expanduser()
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read {path}: {error}; it should have the lines server = and token =") from error
    return {name: str(value) for name, value in found.items() if name in ("server", "token")}
