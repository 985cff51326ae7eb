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
        -- A rebalance gives rows other ids: who changes them by their old ones collides with it. To everybody else it
        -- has written nothing.
        WITH moved AS (
            DELETE FROM txn_component c USING txn t
             WHERE t.txn_id = ANY (txn_ids) AND t.type = 6 AND c.txn_id = t.txn_id AND c.operation IN ('u', 'd')
            RETURNING c.db, c.tbl, c.partition, c.txn_id
        )
        INSERT INTO write_set (db, tbl, partition, operation, txn_id, commit_id, committed_xid)
        SELECT m.db, m.tbl, coalesce(m.partition, ''), 'r', m.txn_id, horizon, pg_current_xact_id() FROM moved m;
    END IF;
    DELETE FROM materialization_rebuild_lock l WHERE l.txn_id = ANY (txn_ids);
    DELETE FROM repl_txn_map m WHERE m.txn_id = ANY (txn_ids);
END
$$;
