"""Transactions, write ids, written components and locks."""

from alembic import op

revision = "0001"
down_revision = None

TABLES = """
-- The one source of transaction ids. Its row stays locked until an open commits, so ids become visible in their
-- order and without gaps, and last_id is the high-water mark of every snapshot.
CREATE TABLE txn_counter (
    only_row    boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    last_id     bigint  NOT NULL CHECK (last_id >= 0),
    counted_open bigint NOT NULL CHECK (counted_open >= 0),  -- open transactions when they were last counted,
    counted_at  bigint  NOT NULL CHECK (counted_at >= 0)     -- which was when this id was the last one
) WITH (fillfactor = 10);
COMMENT ON TABLE txn_counter IS 'Source of transaction ids, one row';
INSERT INTO txn_counter (last_id, counted_open, counted_at) VALUES (0, 0, 0);

CREATE TABLE txn (
    txn_id          bigint      PRIMARY KEY CHECK (txn_id > 0),
    state           text        NOT NULL CHECK (state IN ('o', 'a', 'c')),
    type            smallint    NOT NULL CHECK (type BETWEEN 0 AND 6),
    user_name       text        NOT NULL,
    host_name       text        NOT NULL,
    agent_info      text        NOT NULL,
    started_at      timestamptz NOT NULL,
    heartbeat_at    timestamptz NOT NULL,
    heartbeat_count integer     NOT NULL DEFAULT 0 CHECK (heartbeat_count >= 0),
    opened_snapshot pg_snapshot NOT NULL,
    ended_at        timestamptz,
    ended_xid       xid8,
    abort_reason    text,
    CHECK ((state = 'o') = (ended_at IS NULL)),
    CHECK ((state = 'o') = (ended_xid IS NULL)),
    CHECK ((state = 'a') = (abort_reason IS NOT NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000,
        autovacuum_analyze_threshold = 5000);
COMMENT ON TABLE txn IS 'Transactions: open, aborted ones until their files are gone, lately committed ones';
COMMENT ON COLUMN txn.state IS 'o open, a aborted, c committed';
COMMENT ON COLUMN txn.type IS 'TxnType of the Thrift interface';
COMMENT ON COLUMN txn.opened_snapshot IS 'Which database transactions had committed when this one was opened';
COMMENT ON COLUMN txn.ended_xid IS 'The database transaction that committed or aborted this one';
CREATE INDEX txn_open ON txn (txn_id) WHERE state = 'o';
CREATE INDEX txn_aborted ON txn (txn_id) WHERE state = 'a';
CREATE INDEX txn_committed ON txn (ended_at) WHERE state = 'c';

CREATE TABLE write_id_counter (
    db            text   NOT NULL,
    tbl           text   NOT NULL,
    last_write_id bigint NOT NULL CHECK (last_write_id >= 0),
    PRIMARY KEY (db, tbl)
) WITH (fillfactor = 50);
COMMENT ON TABLE write_id_counter IS 'Last write id handed out per table; survives until the table is dropped';

CREATE TABLE write_id (
    db       text   NOT NULL,
    tbl      text   NOT NULL,
    write_id bigint NOT NULL CHECK (write_id > 0),
    txn_id   bigint NOT NULL CHECK (txn_id > 0),
    PRIMARY KEY (db, tbl, write_id),
    UNIQUE (db, tbl, txn_id)
);
COMMENT ON TABLE write_id IS 'Write ids and the transactions they belong to; a missing one is committed for everybody';
CREATE INDEX write_id_txn ON write_id (txn_id);

CREATE TABLE txn_component (
    txn_id    bigint NOT NULL REFERENCES txn,
    db        text   NOT NULL,
    tbl       text   NOT NULL,
    partition text,
    operation text   NOT NULL CHECK (operation IN ('i', 'u', 'd', 'c')),
    write_id  bigint CHECK (write_id > 0),
    UNIQUE NULLS NOT DISTINCT (txn_id, db, tbl, partition, operation)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
COMMENT ON TABLE txn_component IS
    'What open transactions write, and what aborted ones may have left in files until those are removed';
COMMENT ON COLUMN txn_component.partition IS 'Null for an unpartitioned table or a write to partitions not known yet';
COMMENT ON COLUMN txn_component.operation IS 'i insert, u update, d delete, c compact';
CREATE INDEX txn_component_table ON txn_component (db, tbl);

CREATE TABLE completed_component (
    db            text        NOT NULL,
    tbl           text        NOT NULL,
    partition     text,
    txn_id        bigint      NOT NULL,
    write_id      bigint,
    update_delete boolean     NOT NULL,
    committed_at  timestamptz NOT NULL
);
COMMENT ON TABLE completed_component IS 'Committed writes since the last compaction of their table or partition';
CREATE INDEX completed_component_table ON completed_component (db, tbl, partition);
CREATE INDEX completed_component_time ON completed_component (committed_at);

CREATE TABLE write_set (
    db             text   NOT NULL,
    tbl            text   NOT NULL,
    partition      text,
    operation      text   NOT NULL CHECK (operation IN ('u', 'd')),
    txn_id         bigint NOT NULL,
    commit_id      bigint NOT NULL,
    committed_xid  xid8   NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 2000);
COMMENT ON TABLE write_set IS 'Committed updates and deletes that may conflict with a transaction that is open still';
COMMENT ON COLUMN write_set.commit_id IS 'High-water mark of transactions at the commit, for messages';
COMMENT ON COLUMN write_set.committed_xid IS 'The database transaction of the commit';
CREATE INDEX write_set_table ON write_set (db, tbl, committed_xid);
CREATE INDEX write_set_xid ON write_set (committed_xid);

CREATE SEQUENCE lock_id AS bigint;

CREATE TABLE lock_component (
    lock_id           bigint      NOT NULL CHECK (lock_id > 0),
    component         integer     NOT NULL CHECK (component > 0),
    txn_id            bigint      NOT NULL CHECK (txn_id >= 0),
    db                text        NOT NULL,
    tbl               text        NOT NULL,
    partition         text        NOT NULL CHECK (partition = '' OR tbl <> ''),
    type              text        NOT NULL CHECK (type IN ('r', 'w', 'x', 'e')),
    state             text        NOT NULL CHECK (state IN ('a', 'w')),
    user_name         text        NOT NULL,
    host_name         text        NOT NULL,
    agent_info        text        NOT NULL,
    heartbeat_at      timestamptz,
    acquired_at       timestamptz,
    blocker_lock      bigint,
    blocker_component integer,
    PRIMARY KEY (lock_id, component),
    CHECK ((state = 'a') = (acquired_at IS NOT NULL)),
    CHECK ((txn_id = 0) = (heartbeat_at IS NOT NULL)),
    CHECK (state = 'w' OR blocker_lock IS NULL),
    CHECK ((blocker_lock IS NULL) = (blocker_component IS NULL))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.0, autovacuum_vacuum_threshold = 1000);
COMMENT ON TABLE lock_component IS 'Locks held and waited for, one row per component of a request';
COMMENT ON COLUMN lock_component.txn_id IS '0 for a lock outside of transactions, which lives by its own heartbeats';
COMMENT ON COLUMN lock_component.tbl IS 'Empty when the whole database is meant; empty rather than null for the index';
COMMENT ON COLUMN lock_component.partition IS 'Empty when the whole table is meant';
COMMENT ON COLUMN lock_component.type IS 'r SHARED_READ, w SHARED_WRITE, x EXCL_WRITE, e EXCLUSIVE';
COMMENT ON COLUMN lock_component.state IS 'a acquired, w waiting';
-- Readers come and go by the thousand; what they have to look at, the strong locks, stays in an index of its own.
CREATE INDEX lock_component_strong ON lock_component (db, tbl, lock_id) WHERE type IN ('x', 'e');
CREATE INDEX lock_component_weak ON lock_component (db, tbl, lock_id) WHERE type IN ('r', 'w');
CREATE INDEX lock_component_txn ON lock_component (txn_id);
"""


def upgrade() -> None:
    """Create the tables."""
    op.execute(TABLES)
