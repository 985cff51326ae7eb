-- Queues a compaction of a table or partition (transactions.md §4.2), unless one waits or is under way, or one that did
-- all that this would do waits for the Cleaner, or whose commit queues another round: then `accepted` is false and id and
-- state are that one's. Behind a minor one a major one has something to do, and a rebalance behind both. A minor one
-- leaves the deltas up to `in_after_write_id` as they are, so behind it another one may have something to do.
CREATE OR REPLACE FUNCTION compact(
    in_type text, in_db text, in_tbl text, in_partition text, in_pool text, in_properties text, in_order_by text,
    in_buckets integer, in_run_as text, in_initiator text, in_initiator_version text, in_head_start_s integer,
    in_after_write_id bigint, in_reason text
) RETURNS TABLE (id bigint, state text, accepted boolean)
LANGUAGE plpgsql AS $$
DECLARE
    highest bigint;
BEGIN
    SELECT CASE WHEN g.has_valid THEN least(g.last_write_id, g.open_ids[1] - 1)
                ELSE least(g.last_write_id, g.open_ids[1] - 1, g.aborted_ids[1]) END INTO highest
      FROM current_write_ids(ARRAY[in_db], ARRAY[in_tbl], ARRAY[NULL::bigint]) g;
    accepted := false;
    FOR attempt IN 1 .. 10 LOOP
        SELECT c.id, c.state INTO compact.id, compact.state
          FROM compaction c
         WHERE c.db = in_db AND c.tbl = in_tbl AND c.partition IS NOT DISTINCT FROM in_partition AND c.type <> 'c'
           AND (c.state IN ('i', 'w')
                OR c.state = 'r' AND c.highest_write_id = highest AND NOT c.properties ? 'location'
                   AND (c.type = in_type OR in_type = 'i' AND c.type = 'a')
                   AND (c.round > 1 OR coalesce(c.after_write_id, 0) <= coalesce(in_after_write_id, 0))
                OR c.state = 'r' AND c.committed_at IS NULL AND c.has_more)
         ORDER BY c.id LIMIT 1;
        IF FOUND THEN
            RETURN NEXT;
            RETURN;
        END IF;
        INSERT INTO compaction AS c (state, type, db, tbl, partition, enqueued_at, pool, properties, order_by, buckets,
                                     run_as, initiator, initiator_version, head_start_s, after_write_id, reason)
        VALUES ('i', in_type, in_db, in_tbl, in_partition, clock_timestamp(), in_pool, in_properties::jsonb,
                in_order_by, in_buckets, in_run_as, in_initiator, in_initiator_version, in_head_start_s,
                in_after_write_id, in_reason)
        ON CONFLICT (db, tbl, partition) WHERE c.state IN ('i', 'w') DO NOTHING
        RETURNING c.id, c.state, true INTO compact.id, compact.state, accepted;
        IF FOUND THEN
            RETURN NEXT;
            RETURN;
        END IF;
        -- Somebody else queued one in this instant: look again.
        accepted := false;
    END LOOP;
    RAISE EXCEPTION 'compactions of %.% come and go too fast', in_db, in_tbl USING ERRCODE = 'serialization_failure';
END
$$;
