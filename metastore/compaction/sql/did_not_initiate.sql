-- Puts on record that the Initiator would have queued a compaction but did not, and why (transactions.md §4.4). What has
-- been put on record behind `last_id`, the newest entry that it knew of (null: whatever there is), it has said itself,
-- and the answer was lost.
CREATE OR REPLACE FUNCTION did_not_initiate(
    in_type text, in_db text, in_tbl text, in_partition text, in_initiator text, message text, last_id bigint
) RETURNS bigint
LANGUAGE sql AS $$
    WITH said AS (
        SELECT max(c.id) AS id FROM compaction c
         WHERE c.db = in_db AND c.tbl = in_tbl AND c.partition IS NOT DISTINCT FROM in_partition
           AND c.state = 'a' AND c.id > last_id
    ), noted AS (
        INSERT INTO compaction (state, type, db, tbl, partition, enqueued_at, ended_at, initiator, error_message)
        SELECT 'a', in_type, in_db, in_tbl, in_partition, clock_timestamp(), clock_timestamp(), in_initiator, message
          FROM said WHERE said.id IS NULL
        RETURNING id
    )
    SELECT coalesce(said.id, noted.id) FROM said LEFT JOIN noted ON true;
$$;
