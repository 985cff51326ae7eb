"""What a crash of the database takes: opened transactions, write ids and locks that were not flushed."""

from alembic import op

revision = "0018"
down_revision = "0017"

TABLES = """
ALTER TABLE txn ADD COLUMN durability text NOT NULL DEFAULT 'y';
COMMENT ON COLUMN txn.durability IS 'y young: a crash of the database may forget what it did; d durable: what it does is
 flushed; l lost: there was a crash while it was young, so it must not commit';
UPDATE txn SET durability = 'd' WHERE state = 'o';

ALTER TABLE txn_counter ADD COLUMN reserved_id bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN txn_counter.reserved_id IS 'No larger id has been given out since this was flushed';
ALTER TABLE write_id_counter ADD COLUMN reserved_write_id bigint NOT NULL DEFAULT 0;
COMMENT ON COLUMN write_id_counter.reserved_write_id IS 'No larger write id has been given out since this was flushed';

CREATE UNLOGGED TABLE uncrashed (since timestamptz NOT NULL);
COMMENT ON TABLE uncrashed IS 'One row; Postgres empties the table when it recovers from a crash';
INSERT INTO uncrashed VALUES (clock_timestamp());
"""


def upgrade() -> None:
    """Add the columns and the table."""
    op.execute(TABLES)
