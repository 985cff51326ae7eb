"""Snapshots read those transactions that have aborted since the one before, not all."""

from alembic import op

revision = "0027"
down_revision = "0026"

TABLES = """
-- A table of its own: who opens a transaction locks txn_counter, and is not to wait for a purge.
CREATE TABLE aborted_era (only_row boolean PRIMARY KEY DEFAULT true, era uuid NOT NULL DEFAULT gen_random_uuid());
COMMENT ON TABLE aborted_era IS 'One row; within an era aborted transactions only come on record. Another one begins
 when some go, and after a crash, which may have taken back ids of database transactions';
INSERT INTO aborted_era DEFAULT VALUES;
CREATE INDEX txn_aborted_since ON txn (ended_xid) WHERE state = 'a';
"""


def upgrade() -> None:
    """Add the era, and the index by which those are found that are new."""
    op.execute(TABLES)
