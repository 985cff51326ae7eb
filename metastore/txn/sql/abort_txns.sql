-- Aborts those of the transactions that are open and frees their locks (transactions.md §1.7). Returns the aborted
-- ones, those that had been aborted before, those that are committed, and the databases whose locks were freed.
--
-- What they may have written stays on record, so that it is never seen and its files are found: a write id whose
-- component was never declared is put down as an insert to the whole table.
CREATE OR REPLACE FUNCTION abort_txns(txn_ids bigint[], reason text)
RETURNS TABLE (aborted bigint[], aborted_before bigint[], committed bigint[], freed_databases text[])
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM txn t WHERE t.txn_id = ANY (txn_ids) ORDER BY t.txn_id FOR NO KEY UPDATE;
    SELECT coalesce(array_agg(t.txn_id) FILTER (WHERE t.state = 'o'), '{}'),
           coalesce(array_agg(t.txn_id) FILTER (WHERE t.state = 'a'), '{}'),
           coalesce(array_agg(t.txn_id) FILTER (WHERE t.state = 'c'), '{}'), '{}'
      INTO aborted, aborted_before, committed, freed_databases
      FROM txn t WHERE t.txn_id = ANY (txn_ids);
    IF cardinality(aborted) > 0 THEN
        UPDATE txn SET state = 'a', abort_reason = reason, ended_at = clock_timestamp(),
                       ended_xid = pg_current_xact_id()
         WHERE txn_id = ANY (aborted);
        UPDATE txn_component c SET write_id = w.write_id FROM write_id w
         WHERE c.txn_id = ANY (aborted) AND c.write_id IS NULL
           AND w.txn_id = c.txn_id AND w.db = c.db AND w.tbl = c.tbl;
        INSERT INTO txn_component (txn_id, db, tbl, operation, write_id)
        SELECT w.txn_id, w.db, w.tbl, 'i', w.write_id FROM write_id w
         WHERE w.txn_id = ANY (aborted)
           AND NOT EXISTS (SELECT 1 FROM txn_component c WHERE c.txn_id = w.txn_id AND c.db = w.db AND c.tbl = w.tbl);
        freed_databases := release_locks(aborted);
    END IF;
    RETURN NEXT;
END
$$;
