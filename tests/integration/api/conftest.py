"""An API over PostgreSQL with two teams, served for real."""

from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest
from support.api import Served, make_parts


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, postgres_server) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("api")
    url = postgres_server.create_database(f"api_{folder.name}_{id(folder)}".replace("-", "_"))
    parts = make_parts(folder, url, requests_per_minute=100_000, upload_max_bytes=2_000_000, body_max_bytes=1_000_000)
    with Served(parts) as running:
        yield running
    parts.close()


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[httpx2.Client]:
    with served.client(served.token("mine")) as made:
        yield made


@pytest.fixture(scope="module")
def stranger(served: Served) -> Iterator[httpx2.Client]:
    with served.client(served.token("theirs")) as made:
        yield made
