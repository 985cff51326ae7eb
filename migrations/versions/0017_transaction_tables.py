"""Transactions: what they say of themselves when they are opened."""

from alembic import op

revision = "0017"
down_revision = "0016"

TABLES = """
ALTER TABLE txn ADD COLUMN may_begin_again boolean;
COMMENT ON COLUMN txn.may_begin_again IS 'Whether nobody minds if rows that it was to change get other ids before it has
 locked them, because its client runs it anew; null: it has not said';
COMMENT ON TABLE min_history_write_id IS 'Which tables transactions use: they need the files of no others';
COMMENT ON COLUMN min_history_write_id.write_id IS 'Below it nothing was open when the transaction took its snapshot';
"""


def upgrade() -> None:
    """Add the column."""
    op.execute(TABLES)
