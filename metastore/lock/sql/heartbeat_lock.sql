-- Heartbeats a lock outside of transactions, at once; false if it is not there (transactions.md §1.3). A lock of a
-- transaction lives as long as that.
CREATE OR REPLACE FUNCTION heartbeat_lock(beating bigint) RETURNS TABLE (is_there boolean)
LANGUAGE plpgsql AS $$
BEGIN
    -- A heartbeat lost in a crash of Postgres costs nothing: time-outs are counted in minutes.
    PERFORM set_config('synchronous_commit', 'off', true);
    UPDATE lock_component SET heartbeat_at = clock_timestamp() WHERE lock_id = beating AND txn_id = 0;
    RETURN QUERY SELECT FOUND OR EXISTS (SELECT 1 FROM lock_component l WHERE l.lock_id = beating);
END
$$;
