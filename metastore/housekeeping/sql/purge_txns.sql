-- Forgets up to `at_most` transactions that committed, and as many that aborted, at least `retention_ms` ago; until then
-- a repeated commit is answered. Committed ones stay as long as a write id is on record as theirs, aborted ones as long
-- as something of theirs may be left in files; with these go their write ids. Returns how many of each went.
CREATE OR REPLACE FUNCTION purge_txns(retention_ms bigint, at_most integer)
RETURNS TABLE (committed bigint, aborted bigint)
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    latest timestamptz := clock_timestamp() - make_interval(secs => retention_ms / 1000.0);
    clean bigint[];
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);  -- what a crash brings back goes again
    DELETE FROM txn WHERE ctid = ANY (ARRAY(
        SELECT t.ctid FROM txn t
         WHERE t.state = 'c' AND t.ended_at < latest
           AND NOT EXISTS (SELECT 1 FROM write_id w WHERE w.txn_id = t.txn_id)
         ORDER BY t.ended_at LIMIT at_most));
    GET DIAGNOSTICS committed = ROW_COUNT;
    clean := ARRAY(
        SELECT t.txn_id FROM txn t
         WHERE t.state = 'a' AND t.ended_at < latest
           AND NOT EXISTS (SELECT 1 FROM txn_component c WHERE c.txn_id = t.txn_id)
         ORDER BY t.txn_id LIMIT at_most);
    aborted := cardinality(clean);
    IF aborted > 0 THEN
        PERFORM aborted_writes_changed(clean);
        PERFORM outdate_aborted_statistics(clean);
        DELETE FROM unresolved_write_id WHERE txn_id = ANY (clean);
        DELETE FROM write_id WHERE txn_id = ANY (clean);
        DELETE FROM txn WHERE txn_id = ANY (clean);
        UPDATE aborted_era SET era = gen_random_uuid();
    END IF;
    RETURN NEXT;
END
$$;
