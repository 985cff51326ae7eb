-- The events of compactions whose transactions commit now: readers' caches of files are of no more use (transactions.md
-- §1.11). Called by record_txns_ended.
CREATE OR REPLACE FUNCTION record_compactions_committed(txn_ids bigint[]) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO notification_event (event_type, db, tbl, details)
    SELECT 'COMMIT_COMPACTION_EVENT', c.db, c.tbl,
           json_build_object('txn_id', c.txn_id, 'compaction_id', c.id, 'type', c.type, 'partition_name', c.partition)
      FROM compaction c JOIN txn t ON t.txn_id = c.txn_id
     WHERE c.txn_id = ANY (txn_ids) AND c.state = 'r' AND t.type IN (3, 6)  -- COMPACTION, REBALANCE_COMPACTION
     ORDER BY c.id;
$$;
