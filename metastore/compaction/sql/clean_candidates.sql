-- Compactions whose replaced files may go: their transaction committed at least `retention_ms` ago, no transaction is
-- open that may need them, and no earlier failure delays them (transactions.md §4.8). Of each table or partition the
-- one that reaches least far. A transaction that has named the tables it reads (add_min_history) needs no others.
CREATE OR REPLACE FUNCTION clean_candidates(retention_ms bigint, at_most integer) RETURNS SETOF compaction
LANGUAGE sql AS $$
    SELECT * FROM compaction WHERE id IN (
        SELECT DISTINCT ON (c.db, c.tbl, c.partition) c.id FROM compaction c
         WHERE c.state = 'r' AND c.type <> 'c'
           AND c.committed_at <= clock_timestamp() - make_interval(secs => retention_ms / 1000.0)
           AND (c.clean_after IS NULL OR c.clean_after <= clock_timestamp())
           AND NOT EXISTS (
               SELECT 1 FROM txn t
                WHERE t.state = 'o' AND t.txn_id <= c.next_txn_id
                  AND (NOT EXISTS (SELECT 1 FROM min_history_write_id m WHERE m.txn_id = t.txn_id)
                       OR EXISTS (SELECT 1 FROM min_history_write_id m
                                   WHERE m.txn_id = t.txn_id AND m.db = c.db AND m.tbl = c.tbl)))
         ORDER BY c.db, c.tbl, c.partition, c.highest_write_id, c.id)
     ORDER BY id LIMIT at_most;
$$;
