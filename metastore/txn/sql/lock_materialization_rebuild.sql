-- Lets one transaction rebuild a materialised view (transactions.md §3.10). Outcome: acquired, also for the one that
-- has it already; not_acquired while another transaction that has it is open; or txn_aborted, txn_committed, txn_unknown.
-- Whoever ends, in whatever way, has it no longer. Safe to repeat.
CREATE OR REPLACE FUNCTION lock_materialization_rebuild(in_db text, in_tbl text, rebuilding bigint)
RETURNS TABLE (outcome text)
LANGUAGE plpgsql AS $$
DECLARE
    found_state text;
BEGIN
    SELECT t.state INTO found_state FROM txn t WHERE t.txn_id = rebuilding FOR SHARE;
    IF found_state IS DISTINCT FROM 'o' THEN
        RETURN QUERY SELECT CASE found_state
            WHEN 'a' THEN 'txn_aborted' WHEN 'c' THEN 'txn_committed' ELSE 'txn_unknown' END;
        RETURN;
    END IF;
    INSERT INTO materialization_rebuild_lock AS m (txn_id, db, tbl, heartbeat_at)
    VALUES (rebuilding, in_db, in_tbl, clock_timestamp())
    ON CONFLICT (db, tbl) DO UPDATE SET txn_id = rebuilding, heartbeat_at = clock_timestamp()
     WHERE m.txn_id = rebuilding
        OR NOT EXISTS (SELECT 1 FROM txn t WHERE t.txn_id = m.txn_id AND t.state = 'o');
    RETURN QUERY SELECT CASE WHEN FOUND THEN 'acquired' ELSE 'not_acquired' END;
END
$$;
