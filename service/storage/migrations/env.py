"""Called by Alembic for every step; the connection is handed over by `service.storage.schema`."""

from alembic import context

from service.storage.tables import metadata

connection = context.config.attributes["connection"]
context.configure(connection=connection, target_metadata=metadata, render_as_batch=True, compare_type=True)
with context.begin_transaction():
    context.run_migrations()
