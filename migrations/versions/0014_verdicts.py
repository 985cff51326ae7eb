"""Compactions: why the services did what they did, and which of those that wait comes next."""

from alembic import op

revision = "0014"
down_revision = "0013"

TABLES = """
CREATE TABLE compaction_verdict (
    db         text        NOT NULL CHECK (db = lower(db)),
    tbl        text        NOT NULL CHECK (tbl = lower(tbl)),
    partition  text,
    service    text        NOT NULL CHECK (service IN ('initiator', 'cleaner')),
    code       text        NOT NULL CHECK (code ~ '^[a-z_]+$'),
    message    text        NOT NULL,
    blocker    bigint      CHECK (blocker > 0),
    decided_at timestamptz NOT NULL,
    UNIQUE NULLS NOT DISTINCT (db, tbl, partition, service)
);
COMMENT ON TABLE compaction_verdict IS 'What a service decided when it last looked at a table or partition, and why';
COMMENT ON COLUMN compaction_verdict.code IS 'The reason in one word, for programs';
COMMENT ON COLUMN compaction_verdict.message IS 'The reason with its figures and what to do about it, for people';
COMMENT ON COLUMN compaction_verdict.blocker IS 'The transaction that is in the way';
COMMENT ON COLUMN compaction_verdict.decided_at IS 'Since when it has been just so';

CREATE TABLE compaction_readers (
    db      text NOT NULL,
    tbl     text NOT NULL,
    readers real NOT NULL CHECK (readers >= 0),
    PRIMARY KEY (db, tbl)
);
COMMENT ON TABLE compaction_readers IS 'How many readers tables have at a time, on average';

ALTER TABLE compaction ADD COLUMN head_start_s integer NOT NULL DEFAULT 0 CHECK (head_start_s BETWEEN 0 AND 3600);
COMMENT ON COLUMN compaction.head_start_s IS 'Queued as if it had been asked for so many seconds earlier';
CREATE INDEX compaction_served ON compaction (db, tbl, started_at) WHERE started_at IS NOT NULL;
"""


def upgrade() -> None:
    """Create the tables, the column and the index."""
    op.execute(TABLES)
