"""Compactions: those of many deltas go by rounds, each of which knows where it begins and which one follows; and when
settings of tables have changed by which compactions are decided.
"""

from alembic import op

revision = "0016"
down_revision = "0015"

TABLES = """
ALTER TABLE compaction
    ADD COLUMN round          integer NOT NULL DEFAULT 1 CHECK (round > 0),
    ADD COLUMN after_write_id bigint  CHECK (after_write_id >= 0),
    ADD COLUMN has_more       boolean NOT NULL DEFAULT false,
    ADD COLUMN next_id        bigint;
COMMENT ON COLUMN compaction.round IS 'Which round it is of what was asked for, from 1';
COMMENT ON COLUMN compaction.after_write_id IS 'The round before ended here; null for the first one';
COMMENT ON COLUMN compaction.has_more IS 'It leaves deltas to another round, which its commit queues';
COMMENT ON COLUMN compaction.next_id IS 'The round that follows, or the compaction that the rest was left to';

CREATE TABLE compaction_setting_change (
    db         text        NOT NULL CHECK (db = lower(db)),
    tbl        text        NOT NULL CHECK (tbl = lower(tbl)),
    changed_at timestamptz NOT NULL,
    PRIMARY KEY (db, tbl)
);
COMMENT ON TABLE compaction_setting_change IS
    'When parameters of a table, or of a database (no name of a table), last changed by which compactions are decided';
"""


def upgrade() -> None:
    """Add the columns and the table."""
    op.execute(TABLES)
