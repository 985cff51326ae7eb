-- Heartbeats the open ones of the transactions first_id..last_id, both included, and returns the aborted ones and
-- those that are not there, committed ones among them (transactions.md §1.3).
CREATE OR REPLACE FUNCTION heartbeat_txn_range(first_id bigint, last_id bigint)
RETURNS TABLE (aborted bigint[], nosuch bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    beaten bigint;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);  -- as in heartbeat
    -- Locked in ascending order, like everywhere: two ranges that overlap cannot deadlock.
    WITH live AS MATERIALIZED (
        SELECT t.txn_id FROM txn t
         WHERE t.txn_id BETWEEN first_id AND heartbeat_txn_range.last_id AND t.state = 'o'
         ORDER BY t.txn_id FOR NO KEY UPDATE
    )
    UPDATE txn SET heartbeat_at = clock_timestamp(), heartbeat_count = heartbeat_count + 1
      FROM live WHERE txn.txn_id = live.txn_id AND txn.state = 'o';
    GET DIAGNOSTICS beaten = ROW_COUNT;
    IF beaten = heartbeat_txn_range.last_id - first_id + 1 THEN
        RETURN QUERY SELECT '{}'::bigint[], '{}'::bigint[];
        RETURN;
    END IF;
    RETURN QUERY
        SELECT coalesce(array_agg(id) FILTER (WHERE t.state = 'a'), '{}'),
               coalesce(array_agg(id) FILTER (WHERE t.state IS NULL OR t.state = 'c'), '{}')
          FROM generate_series(first_id, heartbeat_txn_range.last_id) AS id LEFT JOIN txn t ON t.txn_id = id;
END
$$;
