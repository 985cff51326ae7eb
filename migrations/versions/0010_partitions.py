"""The catalogue: partitions keep only what differs from their table."""

from alembic import op

revision = "0010"
down_revision = "0009"

TABLES = """
ALTER TABLE partition ALTER COLUMN storage DROP NOT NULL;
COMMENT ON COLUMN partition.storage IS 'Null: that of the table';
UPDATE partition p SET storage = NULL FROM tbl t WHERE t.id = p.table_id AND t.storage = p.storage;
"""


def upgrade() -> None:
    """Change the table."""
    op.execute(TABLES)
