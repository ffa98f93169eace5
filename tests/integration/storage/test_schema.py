"""Migrations and tables agree, on an empty and on a used database."""

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import Engine, text
from support.rows import add_batch

from service.errors import Unavailable
from service.storage.schema import current, migrate, newest, require_newest
from service.storage.store import Store
from service.storage.tables import metadata


def test_migrations_and_tables_agree(engine: Engine) -> None:
    migrate(engine)

    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, metadata) == []


def test_every_column_says_what_it_is_for() -> None:
    silent = [
        f"{table.name}.{column.name}" for table in metadata.sorted_tables for column in table.c if not column.comment
    ]

    assert silent == []


def test_migrating_twice_keeps_what_is_there(engine: Engine) -> None:
    migrate(engine)
    store = Store(engine)
    batch_id = add_batch(store)

    migrate(engine)

    assert store.batches.one(batch_id) is not None


def test_an_empty_database_is_refused_with_the_remedy(engine: Engine) -> None:
    assert current(engine) is None
    with pytest.raises(Unavailable, match="run `assay migrate` first"):
        require_newest(engine)


def test_a_database_from_the_future_is_refused(engine: Engine) -> None:
    migrate(engine)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))

    with pytest.raises(Unavailable, match="newer than this program"):
        require_newest(engine)


def test_a_migrated_database_is_at_the_newest_version(engine: Engine) -> None:
    assert migrate(engine) == newest() == current(engine)
    require_newest(engine)
