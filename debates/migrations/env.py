"""Runs Alembic's migrations on the connection that holds the lock."""

from alembic import context

from contend.debates.migrations import VERSION_TABLE
from contend.debates.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    version_table=VERSION_TABLE,
)
with context.begin_transaction():
    context.run_migrations()
