-- Compactions whose replaced files may go: nothing is in the way (see clean_outlook; transactions.md §4.8). Of each table
-- or partition the one that reaches least far.
CREATE OR REPLACE FUNCTION clean_candidates(retention_ms bigint, at_most integer) RETURNS SETOF compaction
LANGUAGE sql AS $$
    SELECT * FROM compaction WHERE id IN (
        SELECT DISTINCT ON (o.db, o.tbl, o.partition) o.id FROM clean_outlook(retention_ms) o
         WHERE o.obstacle IS NULL
         ORDER BY o.db, o.tbl, o.partition, o.highest_write_id, o.id)
     ORDER BY id LIMIT at_most;
$$;
