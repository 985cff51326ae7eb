-- Removes what goes with open transactions from those that have ended otherwise than it was cared for: the map of
-- replicated ones, rebuild locks of materialised views (transactions.md §3.10) and minimum history. Up to `at_most` of
-- each; returns how many.
CREATE OR REPLACE FUNCTION purge_dependents(at_most integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    mapped bigint;
    rebuilding bigint;
    reading bigint;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);  -- what a crash brings back goes again
    DELETE FROM repl_txn_map WHERE ctid = ANY (ARRAY(
        SELECT m.ctid FROM repl_txn_map m
         WHERE NOT EXISTS (SELECT 1 FROM txn t WHERE t.txn_id = m.txn_id AND t.state = 'o') LIMIT at_most));
    GET DIAGNOSTICS mapped = ROW_COUNT;
    DELETE FROM materialization_rebuild_lock WHERE ctid = ANY (ARRAY(
        SELECT l.ctid FROM materialization_rebuild_lock l
         WHERE NOT EXISTS (SELECT 1 FROM txn t WHERE t.txn_id = l.txn_id AND t.state = 'o') LIMIT at_most));
    GET DIAGNOSTICS rebuilding = ROW_COUNT;
    DELETE FROM min_history_write_id WHERE ctid = ANY (ARRAY(
        SELECT h.ctid FROM min_history_write_id h
         WHERE NOT EXISTS (SELECT 1 FROM txn t WHERE t.txn_id = h.txn_id AND t.state = 'o') LIMIT at_most));
    GET DIAGNOSTICS reading = ROW_COUNT;
    RETURN mapped + rebuilding + reading;
END
$$;
