"""Compactions: queue and history in one table."""

from alembic import op

revision = "0003"
down_revision = "0002"

TABLES = """
CREATE TABLE compaction (
    id                bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state             text        NOT NULL CHECK (state IN ('i', 'w', 'r', 's', 'f', 'a', 'c', 'x')),
    type              text        NOT NULL CHECK (type IN ('i', 'a', 'r', 'c')),
    db                text        NOT NULL CHECK (db = lower(db)),
    tbl               text        NOT NULL CHECK (tbl = lower(tbl)),
    partition         text,
    enqueued_at       timestamptz NOT NULL,
    started_at        timestamptz,
    committed_at      timestamptz,
    ended_at          timestamptz,
    worker            text,
    attempts          integer     NOT NULL DEFAULT 0 CHECK (attempts >= 0),
    txn_id            bigint      CHECK (txn_id > 0),
    highest_write_id  bigint      CHECK (highest_write_id >= 0),
    next_txn_id       bigint      CHECK (next_txn_id >= txn_id),
    cleaner_started_at timestamptz,
    cleaner_failures  integer     NOT NULL DEFAULT 0 CHECK (cleaner_failures >= 0),
    clean_after       timestamptz,
    error_message     text,
    pool              text,
    properties        jsonb       NOT NULL DEFAULT '{}',
    order_by          text,
    buckets           integer     CHECK (buckets > 0),
    run_as            text,
    initiator         text,
    initiator_version text,
    worker_version    text,
    job_id            text,
    CONSTRAINT history_has_ended CHECK ((state IN ('s', 'f', 'a', 'c', 'x')) = (ended_at IS NOT NULL)),
    CONSTRAINT only_work_has_a_worker CHECK ((state = 'w') = (worker IS NOT NULL)),
    CONSTRAINT work_has_started CHECK (state <> 'w' OR started_at IS NOT NULL),
    CONSTRAINT commit_stamps_both CHECK ((next_txn_id IS NULL) = (committed_at IS NULL)),
    CONSTRAINT failures_say_why CHECK (state NOT IN ('f', 'a', 'c') OR error_message IS NOT NULL)
) WITH (fillfactor = 80);
COMMENT ON TABLE compaction IS 'Compactions waited for, under way, waiting for the Cleaner (i, w, r), and ended ones';
COMMENT ON COLUMN compaction.state IS
    'i initiated, w working, r ready for cleaning, s succeeded, f failed, a did not initiate, c refused, x aborted';
COMMENT ON COLUMN compaction.type IS 'i minor, a major, r rebalance, c retry of cleaning up after aborted transactions';
COMMENT ON COLUMN compaction.attempts IS 'How often a worker took it up';
COMMENT ON COLUMN compaction.txn_id IS 'The transaction in which it runs; its number is in the names of its output';
COMMENT ON COLUMN compaction.highest_write_id IS 'Its output replaces nothing above this write id';
COMMENT ON COLUMN compaction.next_txn_id IS 'Transactions up to this one may need what it replaced';
-- One at a time on a table or partition.
CREATE UNIQUE INDEX compaction_busy ON compaction (db, tbl, partition) NULLS NOT DISTINCT WHERE state IN ('i', 'w');
CREATE INDEX compaction_queue ON compaction (id) WHERE state IN ('i', 'w', 'r');
CREATE INDEX compaction_target ON compaction (db, tbl, partition, id);
CREATE INDEX compaction_txn ON compaction (txn_id) WHERE state = 'r';
"""


def upgrade() -> None:
    """Create the table."""
    op.execute(TABLES)


def downgrade() -> None:
    """Drop the table."""
    op.execute("DROP TABLE compaction")
