-- Tables and partitions that may need a compaction (transactions.md §4.4): written since `since_ms`, or the last attempt
-- did not come to a good end; none is queued or under way. `is_blocked` says that the last `failure_threshold`
-- ones all failed, the latest less than `retry_ms` ago (0: whenever that was). `now_ms` is for the next call, with some overlap because a
-- commit shows later than its time.
CREATE OR REPLACE FUNCTION initiator_candidates(
    since_ms bigint, failure_threshold integer, retry_ms bigint, at_most integer
) RETURNS TABLE (db text, tbl text, partition text, is_blocked boolean, last_state text, now_ms bigint)
LANGUAGE sql STABLE AS $$
    SELECT w.db, w.tbl, w.partition, coalesce(past.is_blocked, false), last.state, epoch_ms(clock_timestamp()) - 60000
      FROM (SELECT c.db, c.tbl, c.partition, max(c.committed_at) AS written_at FROM completed_component c
             GROUP BY c.db, c.tbl, c.partition) AS w
      LEFT JOIN LATERAL (
            SELECT h.state FROM compaction h
             WHERE h.db = w.db AND h.tbl = w.tbl AND h.partition IS NOT DISTINCT FROM w.partition
               AND h.state IN ('s', 'f', 'a', 'c', 'x')
             ORDER BY h.id DESC LIMIT 1) AS last ON true
      LEFT JOIN LATERAL (
            SELECT count(*) >= failure_threshold AND bool_and(f.state = 'f')
                   AND (retry_ms = 0 OR max(f.enqueued_at) > clock_timestamp() - make_interval(secs => retry_ms / 1000.0))
                   AS is_blocked
              FROM (SELECT h.state, h.enqueued_at FROM compaction h
                     WHERE h.db = w.db AND h.tbl = w.tbl AND h.partition IS NOT DISTINCT FROM w.partition
                       AND (h.state IN ('s', 'f') OR h.state = 'r' AND h.committed_at IS NOT NULL)
                     ORDER BY h.id DESC LIMIT failure_threshold) AS f) AS past ON true
     WHERE (w.written_at >= to_timestamp(since_ms / 1000.0) OR last.state IN ('a', 'f'))
       AND NOT EXISTS (
            SELECT 1 FROM compaction b
             WHERE b.db = w.db AND b.tbl = w.tbl AND b.partition IS NOT DISTINCT FROM w.partition
               AND b.state IN ('i', 'w'))
     ORDER BY w.written_at LIMIT at_most;
$$;
