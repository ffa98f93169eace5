"""One store on each database: every test here runs on both."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine

from service.storage.engine import open_engine
from service.storage.schema import migrate
from service.storage.store import Store


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/assay.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def engine(database_url: str) -> Iterator[Engine]:
    opened = open_engine(database_url)
    yield opened
    opened.dispose()


@pytest.fixture
def store(engine: Engine) -> Store:
    migrate(engine)
    return Store(engine)
