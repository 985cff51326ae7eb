"""Alembic's entry: runs the migrations on the connection, and inside the transaction, of `metastore.store.migrate`."""

from alembic import context

from metastore.store.database import SCHEMA

context.configure(connection=context.config.attributes["connection"], version_table_schema=SCHEMA)
context.run_migrations()
