"""Leases of the background services, and what housekeeping needs to work in small steps."""

from alembic import op

revision = "0005"
down_revision = "0004"

TABLES = """
CREATE TABLE lease (
    name       text        PRIMARY KEY,
    holder     text        NOT NULL,
    epoch      bigint      NOT NULL CHECK (epoch > 0),
    expires_at timestamptz NOT NULL
);
COMMENT ON TABLE lease IS 'Which server runs the background services; a row per name, taken over, never removed';
COMMENT ON COLUMN lease.epoch IS 'Counts the holders: work begun under an earlier epoch changes nothing any more';
COMMENT ON COLUMN lease.expires_at IS 'From then on anybody may take it';

-- A row may stand for a whole run of write ids: the committed ones between two that matter, see merge_write_ids.
ALTER TABLE write_id ADD COLUMN first_write_id bigint CHECK (first_write_id > 0 AND first_write_id < write_id);
COMMENT ON COLUMN write_id.first_write_id IS
    'Null for a single write id; else the row stands for all from here to write_id, seen alike by every snapshot';

-- Whether a later write makes a row superfluous is one probe of the index.
DROP INDEX completed_component_table;
CREATE INDEX completed_component_table ON completed_component (db, tbl, partition, write_id);
"""


def upgrade() -> None:
    """Create the tables."""
    op.execute(TABLES)
