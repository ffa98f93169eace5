"""The database's schema version: apply migrations, or say what is wrong with it."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, func, select

from service.errors import Unavailable
from service.storage.store import database_errors

# Any number: the name of the lock under which one process at a time migrates.
_MIGRATION_LOCK = 0x6D696772


def _config(connection: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    return config


def newest() -> str:
    """The version this program was written for."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None
    return head


def current(engine: Engine) -> str | None:
    """The version the database is at; None if it is empty."""
    with database_errors(), engine.connect() as connection:
        return MigrationContext.configure(connection).get_current_revision()


def migrate(engine: Engine) -> str:
    """Bring the database to the newest version; doing it twice, or twice at once, does no harm."""
    with database_errors(), engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
        command.upgrade(_config(connection), "head")
    return newest()


def require_newest(engine: Engine) -> None:
    """Refuse to work on a database of another version."""
    found, wanted = current(engine), newest()
    if found == wanted:
        return
    if found is None:
        raise Unavailable("the database is empty; run `assay migrate` first")
    known = {step.revision for step in ScriptDirectory.from_config(_config()).walk_revisions()}
    if found in known:
        raise Unavailable(f"the database is at version {found}, this program needs {wanted}; run `assay migrate`")
    raise Unavailable(f"the database is at version {found}, which is newer than this program ({wanted}); update Assay")
