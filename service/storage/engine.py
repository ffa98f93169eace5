"""Opening a database: SQLite for one machine, PostgreSQL for a fleet, the same rules for both."""

from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from service.errors import BadInput, Unavailable


def open_engine(url: str, pool_size: int = 20, ping_first: bool = True) -> Engine:
    """An engine for the URL; connects on first use.

    `ping_first` asks every connection whether it still lives before it is used: for doors, where the first request
    after a restart of the database must not fail. Workers try again anyway, and save the round trip.
    """
    try:
        backend = make_url(url).get_backend_name()
    except (ArgumentError, NoSuchModuleError) as error:
        raise BadInput(
            "the database URL cannot be read; use postgresql+psycopg://user@host/name or sqlite:///file"
        ) from error
    if backend == "sqlite":
        return _open_sqlite(url)
    if backend == "postgresql":
        psycopg = make_url(url).set(drivername="postgresql+psycopg")
        return create_engine(
            psycopg,
            pool_pre_ping=ping_first,
            pool_size=pool_size,
            max_overflow=pool_size,
            connect_args={"connect_timeout": 5},
        )
    raise BadInput(f"{backend} is not a database Assay knows; use PostgreSQL or SQLite")


def alone(engine: Engine) -> Engine:
    """The same engine for statements that are a transaction each: on PostgreSQL one round trip instead of three.

    SQLite keeps its own way of beginning, which is a call and not a round trip.
    """
    if engine.dialect.name != "postgresql":
        return engine
    return engine.execution_options(isolation_level="AUTOCOMMIT")


def _open_sqlite(url: str) -> Engine:
    database = make_url(url).database
    if database and database != ":memory:":
        _make_folder(Path(database).parent)
    engine = create_engine(url, connect_args={"timeout": 30, "check_same_thread": False})
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_immediate)
    return engine


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Unavailable(
            f"cannot create the data folder {folder}: {error.strerror}; choose another with --data"
        ) from error


def _prepare_sqlite(connection: Any, _record: Any) -> None:
    # The driver must not begin transactions by itself: its deferred BEGIN fails at once with "database is locked"
    # when it turns into a write, whatever the busy timeout.
    connection.isolation_level = None
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=30000", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_immediate(connection: Any) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")
