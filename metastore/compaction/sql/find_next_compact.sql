-- Gives the next waiting compaction of a pool to a worker, or no row (transactions.md §4.3). Without a pool: the next
-- that has none, or that its pool has left waiting for `pool_timeout_ms`. No two workers get the same one.
-- Tables take turns: next is the one whose turn is the longest ago, be it that it was served or that its first
-- compaction came; of a table what waits the longest. A head start counts as time waited. So ten thousand partitions of
-- one table do not keep others waiting: before a compaction that is its table's next, each other table is served once.
CREATE OR REPLACE FUNCTION find_next_compact(
    in_worker text, in_worker_version text, in_pool text, pool_timeout_ms bigint
) RETURNS SETOF compaction
LANGUAGE sql AS $$
    WITH waiting AS (
        SELECT c.id, c.db, c.tbl, c.enqueued_at - make_interval(secs => c.head_start_s) AS since
          FROM compaction c
         WHERE c.state = 'i'
           AND CASE WHEN in_pool IS NULL
                    THEN c.pool IS NULL
                         OR c.enqueued_at < clock_timestamp() - make_interval(secs => pool_timeout_ms / 1000.0)
                    ELSE c.pool = in_pool END
    ), turn AS (
        SELECT w.db, w.tbl,
               greatest(min(w.since), (SELECT max(s.started_at) FROM compaction s
                                        WHERE s.db = w.db AND s.tbl = w.tbl AND s.started_at IS NOT NULL)) AS since
          FROM waiting w GROUP BY w.db, w.tbl
    )
    UPDATE compaction
       SET state = 'w', worker = in_worker, worker_version = in_worker_version, started_at = clock_timestamp(),
           attempts = attempts + 1
     WHERE id = (
        SELECT c.id FROM waiting w JOIN turn t USING (db, tbl) JOIN compaction c ON c.id = w.id
         WHERE c.state = 'i'
         ORDER BY t.since, w.since, w.id LIMIT 1 FOR UPDATE OF c SKIP LOCKED)
    RETURNING *;
$$;
