"""The notification log, and the trigger functions by which transactions can write to it."""

from alembic import op

revision = "0011"
down_revision = "0010"

TABLES = """
CREATE TABLE notification_event (
    place       bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    event_id    bigint,
    event_type  text        NOT NULL,
    db          text,
    tbl         text,
    details     json        NOT NULL,
    recorded_at timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 2000);
COMMENT ON TABLE notification_event IS 'The notification log: what changed, for those who follow the catalogue';
COMMENT ON COLUMN notification_event.place IS 'Drawn when the event was written, which says nothing about its commit';
COMMENT ON COLUMN notification_event.event_id IS 'Its number for clients; null until somebody reads (number_events)';
COMMENT ON COLUMN notification_event.details IS 'What the message is made of when somebody reads';
CREATE UNIQUE INDEX notification_event_id ON notification_event (event_id);
CREATE INDEX notification_event_unnumbered ON notification_event (place) WHERE event_id IS NULL;

CREATE TABLE notification_counter (
    only_row      boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    last_event_id bigint  NOT NULL CHECK (last_event_id >= 0)
) WITH (fillfactor = 10);
COMMENT ON TABLE notification_counter IS 'The last number of an event, one row';
INSERT INTO notification_counter (last_event_id) VALUES (0);

CREATE TABLE write_notification (
    txn_id           bigint      NOT NULL,
    db               text        NOT NULL,
    tbl              text        NOT NULL,
    partition        text        NOT NULL,
    write_id         bigint      NOT NULL,
    table_object     json        NOT NULL,
    partition_object json,
    files            text[]      NOT NULL,
    recorded_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (txn_id, db, tbl, partition)
);
COMMENT ON TABLE write_notification IS 'The files that transactions added to tables, as their clients report them';
COMMENT ON COLUMN write_notification.partition IS 'By name; empty when the table has none';
CREATE INDEX write_notification_time ON write_notification (recorded_at);

-- The triggers themselves come and go with a setting. What they do is in functions that are replaced with each version.
CREATE FUNCTION tell_txns_opened() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM record_txns_opened(ARRAY(SELECT n.txn_id FROM new_rows n WHERE n.type <> 2 ORDER BY n.txn_id));
    RETURN NULL;
END
$$;

CREATE FUNCTION tell_txns_ended() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM record_txns_ended(array_agg(n.txn_id ORDER BY n.txn_id), array_agg(n.state ORDER BY n.txn_id))
       FROM new_rows n JOIN old_rows o ON o.txn_id = n.txn_id
      WHERE o.state = 'o' AND n.state <> 'o' AND n.type <> 2
     HAVING count(*) > 0;
    RETURN NULL;
END
$$;

CREATE FUNCTION tell_write_ids_allocated() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM record_write_ids_allocated(array_agg(n.db), array_agg(n.tbl), array_agg(n.txn_id), array_agg(n.write_id))
       FROM new_rows n;
    RETURN NULL;
END
$$;
"""


def upgrade() -> None:
    """Create the tables."""
    op.execute(TABLES)
