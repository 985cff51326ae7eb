-- Heartbeats a transaction and a lock; 0 means not this one (transactions.md §1.3). Outcome: ok, or why not, and
-- then neither is heartbeated: txn_aborted, txn_committed, txn_unknown, lock_unknown.
CREATE OR REPLACE FUNCTION heartbeat(beating_txn bigint, beating_lock bigint) RETURNS TABLE (outcome text)
LANGUAGE plpgsql AS $$
DECLARE
    found_state text;
BEGIN
    -- A heartbeat lost in a crash of Postgres costs nothing: time-outs are counted in minutes.
    PERFORM set_config('synchronous_commit', 'off', true);
    IF beating_lock <> 0 AND NOT EXISTS (SELECT 1 FROM lock_component l WHERE l.lock_id = beating_lock) THEN
        RETURN QUERY SELECT 'lock_unknown';
        RETURN;
    END IF;
    IF beating_txn <> 0 THEN
        UPDATE txn SET heartbeat_at = clock_timestamp(), heartbeat_count = heartbeat_count + 1
         WHERE txn.txn_id = beating_txn AND txn.state = 'o';
        IF NOT FOUND THEN
            SELECT t.state INTO found_state FROM txn t WHERE t.txn_id = beating_txn;
            RETURN QUERY SELECT CASE found_state
                WHEN 'a' THEN 'txn_aborted' WHEN 'c' THEN 'txn_committed' ELSE 'txn_unknown' END;
            RETURN;
        END IF;
    END IF;
    IF beating_lock <> 0 THEN
        UPDATE lock_component SET heartbeat_at = clock_timestamp() WHERE lock_id = beating_lock AND txn_id = 0;
    END IF;
    RETURN QUERY SELECT 'ok';
END
$$;
