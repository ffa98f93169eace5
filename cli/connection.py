"""Whom a command talks to: a server, by --server, ASSAY_SERVER or the client file; else the data folder."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Annotated, Any, Protocol

import typer

from service.errors import BadInput
from service.settings import Settings, embedded_settings, load_settings

Server = Annotated[str | None, typer.Option("--server", metavar="URL", help="The API; else the data folder.")]
Data = Annotated[Path | None, typer.Option("--data", help="The data folder, without a server.")]
BatchId = Annotated[str, typer.Argument(metavar="BATCH", help="The id of a batch.")]
Json = dict[str, Any]


class Desk(Protocol):
    """What commands ask, of a server or of the data folder."""

    def submit(
        self,
        skill: str | Path,
        evals: Path | None = None,
        settings: Mapping[str, Any] | None = None,
        against: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
        priority: int = 0,
    ) -> Json:
        """Submit a batch."""

    def batches(self, **asked: Any) -> Iterator[Json]:
        """All batches, newest first."""

    def batch(self, batch_id: str) -> Json:
        """One batch."""

    def watch(self, batch_id: str) -> Iterator[Json]:
        """Progress after progress until it ends."""

    def cancel(self, batch_id: str) -> Json:
        """Stop it."""

    def pause(self, batch_id: str) -> Json:
        """Let no waiting run start."""

    def resume(self, batch_id: str) -> Json:
        """Let it go on."""

    def retry(self, batch_id: str, outcomes: Sequence[str] | None = None) -> int:
        """Continue failed runs."""

    def regrade(self, batch_id: str, evals: Path | None = None, settings: Mapping[str, Any] | None = None) -> Json:
        """Grade its artifacts anew, as a new batch."""

    def save(self, batch_id: str, what: str, out: IO[bytes]) -> None:
        """Write one of its files."""

    def compare(self, wanted: Mapping[str, Any]) -> Json:
        """Submit a comparison."""

    def comparison(self, comparison_id: str) -> Json:
        """One comparison."""

    def carry_out(self, comparison_id: str) -> None:
        """Do what can be done here to bring a comparison to its end."""

    def comparison_file(self, comparison_id: str, name: str) -> bytes:
        """One file of a finished comparison."""

    def history(self, skill: str, dialect: str) -> Json:
        """history.json of a skill."""


def open_desk(server: str | None, data: Path | None) -> AbstractContextManager[Desk]:
    """The desk to ask; a data folder that is named goes before a server that is only set."""
    settings = load_settings(data=data)
    filed = _filed(settings) if data is None else {}
    address = server or (None if data else settings.server or filed.get("server"))
    if address:
        from cli.client import Client

        token = settings.token.get_secret_value() if settings.token else filed.get("token")
        return Client(address, token)
    from cli.local import Local

    return Local(settings if settings.database_url else embedded_settings(data=data))


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
