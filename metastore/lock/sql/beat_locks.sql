-- Heartbeats locks outside of transactions, at once, for many callers; one row for each request that is there
-- (transactions.md §1.3). A lock of a transaction lives as long as that, and is only looked for.
CREATE OR REPLACE FUNCTION beat_locks(beating bigint[]) RETURNS TABLE (lock_id bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    found bigint[];
    alone bigint[];
BEGIN
    SELECT array_agg(DISTINCT l.lock_id), array_agg(DISTINCT l.lock_id) FILTER (WHERE l.txn_id = 0)
      INTO found, alone FROM lock_component l WHERE l.lock_id = ANY (beating);
    IF alone IS NOT NULL THEN
        -- A heartbeat lost in a crash of Postgres costs nothing: time-outs are counted in minutes.
        PERFORM set_config('synchronous_commit', 'off', true);
        UPDATE lock_component c SET heartbeat_at = clock_timestamp()
          FROM (SELECT l.ctid AS place FROM lock_component l
                 WHERE l.lock_id = ANY (alone) AND l.txn_id = 0
                 ORDER BY l.lock_id, l.component FOR NO KEY UPDATE) AS alive
         WHERE c.ctid = alive.place;
    END IF;
    RETURN QUERY SELECT unnest(found);
END
$$;
