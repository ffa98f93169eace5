"""Where the client's requests go."""

import asyncio

import pytest

from service.models import ClientSettings
from service.models.client import Connection


@pytest.mark.parametrize(
    ("given", "address"),
    [(None, "https://api.anthropic.com"), ("", "https://api.anthropic.com"), ("http://gateway:1", "http://gateway:1")],
)
def test_an_empty_address_in_the_environment_is_none(
    given: str | None, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "")

    async def base_url() -> str:
        client = await Connection(ClientSettings("sk-any", given)).client()
        async with client:
            return str(client.base_url).rstrip("/")

    assert asyncio.run(base_url()) == address
