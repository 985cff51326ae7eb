-- What goes with the commit of transactions that are more than reads and writes (transactions.md §1.5).
CREATE OR REPLACE FUNCTION special_txns_committed(txn_ids bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    horizon bigint;
    compaction_types CONSTANT smallint[] := '{3,5,6}';  -- COMPACTION, SOFT_DELETE, REBALANCE_COMPACTION
BEGIN
    IF EXISTS (SELECT 1 FROM txn t WHERE t.txn_id = ANY (txn_ids) AND t.type = ANY (compaction_types)) THEN
        -- No open may be in flight: who opens later sees the outcome, who opened before has an id up to last_id.
        SELECT k.last_id INTO horizon FROM txn_counter k FOR UPDATE;
        PERFORM compaction_committed(t.txn_id, horizon)
           FROM txn t WHERE t.txn_id = ANY (txn_ids) AND t.type = ANY (compaction_types);
    END IF;
    DELETE FROM materialization_rebuild_lock l WHERE l.txn_id = ANY (txn_ids);
    DELETE FROM repl_txn_map m WHERE m.txn_id = ANY (txn_ids);
END
$$;
