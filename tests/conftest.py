"""Fixtures that give tests real servers of their own."""

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator

import pytest
from support.servers import PostgresServer, RedisServer, ServerMissing


def pytest_configure(config: pytest.Config) -> None:
    """A folder for temporary files of this run alone, which the users of sandboxes may pass through.

    Pytest's own is shared by all runs of a user, and each run that starts closes it to everybody else.
    """
    root = tempfile.mkdtemp(prefix="assay-tests-")
    os.chmod(root, 0o711)
    os.environ["PYTEST_DEBUG_TEMPROOT"] = root
    config.add_cleanup(lambda: shutil.rmtree(root, ignore_errors=True))


def missing(reason: str) -> None:
    """At home a missing server or tool is a skip that says so; in CI it is a failure."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[RedisServer]:
    """One Redis for the whole test run; tests that restart one make their own."""
    try:
        server = RedisServer()
    except ServerMissing as error:
        missing(str(error))
    server.start()
    yield server
    server.remove()


@pytest.fixture
def redis_url(redis_server: RedisServer) -> str:
    """An empty Redis."""
    import redis

    with redis.Redis.from_url(redis_server.url) as client:
        client.flushall()
    return redis_server.url


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """One PostgreSQL for the whole test run; tests that restart one make their own."""
    try:
        server = PostgresServer()
    except ServerMissing as error:
        missing(str(error))
    server.start()
    yield server
    server.remove()


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """An empty database."""
    return postgres_server.create_database(f"test_{uuid.uuid4().hex[:12]}")


@pytest.fixture(scope="session")
def bubblewrap() -> str:
    """The path of bwrap."""
    found = shutil.which("bwrap")
    if not found:
        missing("bubblewrap is not installed; install the package bubblewrap")
    return str(found)
