"""Replicated transactions, rebuild locks of materialised views, minimum history, figures of compaction."""

from alembic import op

revision = "0006"
down_revision = "0005"

TABLES = """
CREATE TABLE repl_txn_map (
    policy        text   NOT NULL,
    source_txn_id bigint NOT NULL,
    txn_id        bigint NOT NULL CHECK (txn_id > 0),
    PRIMARY KEY (policy, source_txn_id)
);
COMMENT ON TABLE repl_txn_map IS 'Open transactions of another warehouse and those that replay them here';
COMMENT ON COLUMN repl_txn_map.policy IS 'What is replicated, as the client names it';
CREATE INDEX repl_txn_map_txn ON repl_txn_map (txn_id);

CREATE TABLE materialization_rebuild_lock (
    txn_id       bigint      NOT NULL CHECK (txn_id > 0),
    db           text        NOT NULL,
    tbl          text        NOT NULL,
    heartbeat_at timestamptz NOT NULL,
    PRIMARY KEY (db, tbl)
);
COMMENT ON TABLE materialization_rebuild_lock IS 'Who rebuilds a materialised view, as long as it is open';
CREATE INDEX materialization_rebuild_lock_txn ON materialization_rebuild_lock (txn_id);

CREATE TABLE min_history_write_id (
    txn_id   bigint NOT NULL CHECK (txn_id > 0),
    db       text   NOT NULL,
    tbl      text   NOT NULL,
    write_id bigint NOT NULL CHECK (write_id >= 0),
    PRIMARY KEY (txn_id, db, tbl)
);
COMMENT ON TABLE min_history_write_id IS 'Which tables readers need the files of, as long as they are open';
COMMENT ON COLUMN min_history_write_id.write_id IS 'Below it nothing was open when the reader took its snapshot';
CREATE INDEX min_history_write_id_table ON min_history_write_id (db, tbl);

CREATE TABLE compaction_metric (
    db        text    NOT NULL,
    tbl       text    NOT NULL,
    partition text,
    type      smallint NOT NULL CHECK (type BETWEEN 0 AND 2),
    value     integer NOT NULL,
    version   integer NOT NULL CHECK (version > 0),
    UNIQUE NULLS NOT DISTINCT (db, tbl, partition, type)
);
COMMENT ON TABLE compaction_metric IS 'Tables and partitions with many deltas, as compactors report them';
COMMENT ON COLUMN compaction_metric.type IS 'Number of deltas: 0 obsolete, 1 all, 2 small ones, as on the wire';
"""


def upgrade() -> None:
    """Create the tables."""
    op.execute(TABLES)
