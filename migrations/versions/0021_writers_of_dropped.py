"""Who was writing to a dropped table is on record, so that nobody commits what its return leaves out."""

from alembic import op

revision = "0021"
down_revision = "0020"


def upgrade() -> None:
    """Add the column."""
    op.execute("""
ALTER TABLE dropped_table ADD COLUMN writers bigint[] NOT NULL DEFAULT '{}';
COMMENT ON COLUMN dropped_table.writers IS 'The transactions that were open at the drop and had write ids of the table:
 those that are open still when it comes back are aborted, as what they wrote does not';
""")
