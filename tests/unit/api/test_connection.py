"""Whom a command talks to, and with which token."""

from pathlib import Path

import pytest

from cli.client import Client
from cli.connection import open_desk


@pytest.fixture
def client_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "client.toml"
    monkeypatch.setenv("ASSAY_CLIENT_FILE", str(path))
    monkeypatch.delenv("ASSAY_TOKEN", raising=False)
    monkeypatch.delenv("ASSAY_SERVER", raising=False)
    return path


def shown_to(server: str | None) -> str | None:
    """The Authorization header that a server would see."""
    with open_desk(server, None) as desk:
        assert isinstance(desk, Client)
        header: str | None = desk._http.headers.get("authorization")
        return header


@pytest.mark.parametrize("server", [None, "https://assay.example", "https://assay.example/"])
def test_the_token_of_the_client_file_goes_to_its_server(client_file: Path, server: str | None) -> None:
    client_file.write_text('server = "https://assay.example/"\ntoken = "assay_mine"\n')

    assert shown_to(server) == "Bearer assay_mine"


@pytest.mark.parametrize("server", ["https://evil.example", "http://assay.example", "https://assay.example:8443"])
def test_the_token_of_the_client_file_goes_to_no_other_server(client_file: Path, server: str) -> None:
    client_file.write_text('server = "https://assay.example"\ntoken = "assay_mine"\n')

    assert shown_to(server) is None


def test_a_client_file_without_a_server_has_a_token_for_any(client_file: Path) -> None:
    client_file.write_text('token = "assay_mine"\n')

    assert shown_to("https://assay.example") == "Bearer assay_mine"


def test_the_token_of_the_environment_goes_where_the_command_says(
    client_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client_file.write_text('server = "https://assay.example"\ntoken = "assay_mine"\n')
    monkeypatch.setenv("ASSAY_TOKEN", "assay_other")

    assert shown_to("https://other.example") == "Bearer assay_other"
