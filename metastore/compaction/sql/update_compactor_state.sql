-- Says in which transaction a compaction runs and how far it reaches, before its first file is written (transactions.md
-- §4.3). The component keeps an aborted transaction on record until its files are removed. False if the compaction
-- is not this worker's (any worker's, if null) any more.
CREATE OR REPLACE FUNCTION update_compactor_state(
    compaction_id bigint, in_worker text, in_txn_id bigint, in_highest_write_id bigint, in_run_as text
) RETURNS boolean
LANGUAGE sql AS $$
    WITH updated AS (
        UPDATE compaction
           SET txn_id = in_txn_id, highest_write_id = in_highest_write_id, run_as = coalesce(in_run_as, run_as)
         WHERE id = compaction_id AND state = 'w' AND worker = coalesce(in_worker, worker)
        RETURNING db, tbl, partition
    ), component AS (
        INSERT INTO txn_component (txn_id, db, tbl, partition, operation, write_id)
        SELECT in_txn_id, db, tbl, partition, 'c', nullif(in_highest_write_id, 0) FROM updated
        ON CONFLICT DO NOTHING
    )
    SELECT EXISTS (SELECT 1 FROM updated);
$$;
