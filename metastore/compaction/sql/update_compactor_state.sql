-- Says in which transaction a compaction runs, how far it reaches, and whether it leaves more to another round, before its
-- first file is written (transactions.md §4.3). The component keeps an aborted transaction on record until its files are removed. Outcome: ok; lost, if the
-- compaction is not this worker's (any worker's, if null) any more; txn_aborted, txn_committed or txn_unknown.
CREATE OR REPLACE FUNCTION update_compactor_state(
    compaction_id bigint, in_worker text, in_txn_id bigint, in_highest_write_id bigint, in_run_as text,
    in_has_more boolean
) RETURNS TABLE (outcome text)
LANGUAGE plpgsql AS $$
DECLARE
    this compaction;
    found_state text;
BEGIN
    SELECT c.* INTO this FROM compaction c
     WHERE c.id = compaction_id AND c.state = 'w' AND c.worker = coalesce(in_worker, c.worker) FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 'lost';
        RETURN;
    END IF;
    SELECT t.state INTO found_state FROM txn t WHERE t.txn_id = in_txn_id;
    IF found_state IS DISTINCT FROM 'o' THEN
        RETURN QUERY SELECT CASE found_state
            WHEN 'a' THEN 'txn_aborted' WHEN 'c' THEN 'txn_committed' ELSE 'txn_unknown' END;
        RETURN;
    END IF;
    UPDATE compaction
       SET txn_id = in_txn_id, highest_write_id = in_highest_write_id, run_as = coalesce(in_run_as, run_as),
           has_more = in_has_more
     WHERE id = compaction_id;
    INSERT INTO txn_component (txn_id, db, tbl, partition, operation, write_id)
    VALUES (in_txn_id, this.db, this.tbl, this.partition, 'c', nullif(in_highest_write_id, 0))
    ON CONFLICT DO NOTHING;
    RETURN QUERY SELECT 'ok';
END
$$;
