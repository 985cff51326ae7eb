-- What the open transactions up to `last_txn_id` may need of the files that compactions replaced while they were open:
--   named        the tables that it has named (add_min_history) or holds locks on, and no others; see
--                metastore/txn/min_history.py
--   compacts     a compactor's, once that has said what it compacts: just that table, or that partition if it is not null
--   unnamed      all others: everything (no table), since a client may take its snapshot first and lock later, or not at
--                all; so its locks are no proof of what it does not read
CREATE OR REPLACE FUNCTION clean_needs(last_txn_id bigint)
RETURNS TABLE (txn_id bigint, need text, db text, tbl text, partition text)
LANGUAGE sql STABLE AS $$
    WITH open_txn AS MATERIALIZED (
        SELECT t.txn_id, t.type FROM txn t WHERE t.state = 'o' AND t.txn_id <= last_txn_id
    ), named AS MATERIALIZED (
        SELECT m.txn_id, m.db, m.tbl FROM open_txn o JOIN min_history_write_id m ON m.txn_id = o.txn_id
    ), compacting AS MATERIALIZED (
        SELECT o.txn_id, k.db, k.tbl, k.partition
          FROM open_txn o JOIN compaction k ON k.txn_id = o.txn_id
         WHERE o.type IN (3, 6)  -- COMPACTION, REBALANCE_COMPACTION
    )
    SELECT n.txn_id, 'named', n.db, n.tbl, NULL FROM named n
     UNION ALL
    SELECT l.txn_id, 'named', l.db, l.tbl, NULL FROM lock_component l
     WHERE l.txn_id IN (SELECT n.txn_id FROM named n)
     UNION ALL
    SELECT k.txn_id, 'compacts', k.db, k.tbl, k.partition FROM compacting k
     UNION ALL
    SELECT o.txn_id, 'unnamed', NULL, NULL, NULL FROM open_txn o
     WHERE NOT EXISTS (SELECT 1 FROM named n WHERE n.txn_id = o.txn_id)
       AND NOT EXISTS (SELECT 1 FROM compacting k WHERE k.txn_id = o.txn_id)
$$;
