-- Aborts those of the transactions that are open and frees their locks (transactions.md §1.7). Returns the aborted
-- ones, those that had been aborted before, those that are committed, and the locks that were freed.
--
-- What they may have written stays on record, so that it is never seen and its files are found: a write id whose
-- component was never declared is put down as an insert to the whole table.
CREATE OR REPLACE FUNCTION abort_txns(txn_ids bigint[], reason text)
RETURNS TABLE (aborted bigint[], aborted_before bigint[], committed bigint[], freed_locks bigint[])
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM txn t WHERE t.txn_id = ANY (txn_ids) ORDER BY t.txn_id FOR NO KEY UPDATE;
    SELECT coalesce(array_agg(t.txn_id) FILTER (WHERE t.state = 'o'), '{}'),
           coalesce(array_agg(t.txn_id) FILTER (WHERE t.state = 'a'), '{}'),
           coalesce(array_agg(t.txn_id) FILTER (WHERE t.state = 'c'), '{}'), '{}'
      INTO aborted, aborted_before, committed, freed_locks
      FROM txn t WHERE t.txn_id = ANY (txn_ids);
    IF cardinality(aborted) > 0 THEN
        UPDATE txn SET state = 'a', abort_reason = reason, ended_at = clock_timestamp(),
                       ended_xid = pg_current_xact_id()
         WHERE txn_id = ANY (aborted);
        UPDATE unresolved_write_id SET is_aborted = true WHERE txn_id = ANY (aborted);
        IF FOUND THEN
            PERFORM aborted_writes_changed(aborted);
            UPDATE txn_component c SET write_id = u.write_id FROM unresolved_write_id u
             WHERE c.txn_id = ANY (aborted) AND c.write_id IS NULL
               AND u.txn_id = c.txn_id AND u.db = c.db AND u.tbl = c.tbl;
            INSERT INTO txn_component (txn_id, db, tbl, operation, write_id)
            SELECT u.txn_id, u.db, u.tbl, 'i', u.write_id FROM unresolved_write_id u
             WHERE u.txn_id = ANY (aborted)
               AND NOT EXISTS (SELECT 1 FROM txn_component c
                                WHERE c.txn_id = u.txn_id AND c.db = u.db AND c.tbl = u.tbl);
        END IF;
        IF EXISTS (SELECT 1 FROM txn t WHERE t.txn_id = ANY (aborted) AND t.type = 1) THEN  -- REPL_CREATED
            PERFORM repl_txns_aborted(aborted);
        END IF;
        freed_locks := release_locks(aborted);
    END IF;
    RETURN NEXT;
END
$$;
