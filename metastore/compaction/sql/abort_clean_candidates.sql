-- Tables and partitions with files of aborted transactions to remove: more than `threshold` of these, or one that was
-- opened more than `age_ms` ago (transactions.md §4.10); an earlier failure delays them.
CREATE OR REPLACE FUNCTION abort_clean_candidates(threshold bigint, age_ms bigint, at_most integer)
RETURNS TABLE (db text, tbl text, partition text)
LANGUAGE sql STABLE AS $$
    SELECT c.db, c.tbl, c.partition FROM txn_component c JOIN txn t ON t.txn_id = c.txn_id
     WHERE t.state = 'a'
     GROUP BY c.db, c.tbl, c.partition
    HAVING (count(DISTINCT t.txn_id) > threshold
            OR age_ms >= 0 AND min(t.started_at) < clock_timestamp() - make_interval(secs => age_ms / 1000.0))
       AND NOT EXISTS (
            SELECT 1 FROM compaction r
             WHERE r.type = 'c' AND r.state = 'r' AND r.db = c.db AND r.tbl = c.tbl
               AND r.partition IS NOT DISTINCT FROM c.partition AND r.clean_after > clock_timestamp())
     ORDER BY min(t.txn_id) LIMIT at_most;
$$;
