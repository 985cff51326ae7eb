-- Gives the oldest waiting compaction of a pool to a worker, or no row (transactions.md §4.3). Without a pool: the
-- oldest that has none, or that its pool has left waiting for `pool_timeout_ms`. No two workers get the same one.
CREATE OR REPLACE FUNCTION find_next_compact(
    in_worker text, in_worker_version text, in_pool text, pool_timeout_ms bigint
) RETURNS SETOF compaction
LANGUAGE sql AS $$
    UPDATE compaction
       SET state = 'w', worker = in_worker, worker_version = in_worker_version, started_at = clock_timestamp(),
           attempts = attempts + 1
     WHERE id = (
        SELECT c.id FROM compaction c
         WHERE c.state = 'i'
           AND CASE WHEN in_pool IS NULL
                    THEN c.pool IS NULL
                         OR c.enqueued_at < clock_timestamp() - make_interval(secs => pool_timeout_ms / 1000.0)
                    ELSE c.pool = in_pool END
         ORDER BY c.id LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING *;
$$;
