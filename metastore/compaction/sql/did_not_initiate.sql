-- Puts on record that the Initiator would have queued a compaction but did not, and why (transactions.md §4.4).
CREATE OR REPLACE FUNCTION did_not_initiate(
    in_type text, in_db text, in_tbl text, in_partition text, in_initiator text, message text
) RETURNS bigint
LANGUAGE sql AS $$
    INSERT INTO compaction (state, type, db, tbl, partition, enqueued_at, ended_at, initiator, error_message)
    VALUES ('a', in_type, in_db, in_tbl, in_partition, clock_timestamp(), clock_timestamp(), in_initiator, message)
    RETURNING id;
$$;
