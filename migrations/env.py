"""Alembic's entry: runs the migrations on the connection of `metastore.store.schema.migrate`, in its transaction."""

from alembic import context

from metastore.store.database import SCHEMA

context.configure(connection=context.config.attributes["connection"], version_table_schema=SCHEMA)
context.run_migrations()
