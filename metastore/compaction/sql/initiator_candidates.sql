-- Tables and partitions that may need a compaction (transactions.md §4.4), in the order of their last write, after the one
-- that `after_at` and the names give: a page of `at_most`. None is queued or under way, and
--   written since `since_ms`, or compacted or cleaned since then (what was written meanwhile has not been looked at),
--   or parameters have changed since then by which compactions are decided,
--   or the last attempt did not come to a good end, or it was left alone for a reason of `look_again`,
--   or, unless `abort_threshold` is null, it has files of more aborted transactions than that (too_many) or of one that
--   was opened more than `abort_age_ms` ago (too_old; never if that is negative).
-- `is_blocked` says that the last `failure_threshold` ones all failed, the latest less than `retry_ms` ago (0: whenever
-- that was); `last_error` is why. `last_id` is the newest entry of the history, 0 if there is none. `now_ms` is for the next run, with some overlap because a commit shows later
-- than its time.
CREATE OR REPLACE FUNCTION initiator_candidates(
    since_ms bigint, failure_threshold integer, retry_ms bigint, abort_threshold bigint, abort_age_ms bigint,
    look_again text[], after_at timestamptz, after_db text, after_tbl text, after_partition text, at_most integer
) RETURNS TABLE (last_state text, last_id bigint, db text, tbl text, partition text, at timestamptz, aborts bigint, too_many boolean,
                 too_old boolean, is_blocked boolean, last_error text, now_ms bigint)
LANGUAGE sql STABLE AS $$
    SELECT last.state, coalesce(last.id, 0), w.db, w.tbl, w.partition, w.at, w.aborts, coalesce(w.too_many, false),
           coalesce(w.too_old, false), coalesce(past.is_blocked, false), past.error_message,
           epoch_ms(clock_timestamp()) - 60000
      FROM (SELECT u.db, u.tbl, u.partition, max(u.at) AS at, max(u.written_at) AS written_at,
                   sum(u.aborts)::bigint AS aborts, bool_or(u.too_many) AS too_many,
                   bool_or(u.too_old) AS too_old
              FROM (SELECT c.db, c.tbl, c.partition, max(c.committed_at) AS at, max(c.committed_at) AS written_at,
                           0 AS aborts, false AS too_many, false AS too_old
                      FROM completed_component c GROUP BY c.db, c.tbl, c.partition
                    UNION ALL
                    SELECT a.db, a.tbl, a.partition, a.oldest, NULL, a.number, a.number > abort_threshold,
                           abort_age_ms >= 0
                               AND a.oldest < clock_timestamp() - make_interval(secs => abort_age_ms / 1000.0)
                      FROM (SELECT c.db, c.tbl, c.partition, count(DISTINCT t.txn_id) AS number,
                                   min(t.started_at) AS oldest
                              FROM txn_component c JOIN txn t ON t.txn_id = c.txn_id AND t.state = 'a'
                             WHERE abort_threshold IS NOT NULL
                             GROUP BY c.db, c.tbl, c.partition) AS a) AS u
             GROUP BY u.db, u.tbl, u.partition) AS w
      LEFT JOIN LATERAL (
            SELECT h.state, h.id FROM compaction h
             WHERE h.db = w.db AND h.tbl = w.tbl AND h.partition IS NOT DISTINCT FROM w.partition
               AND h.state IN ('s', 'f', 'a', 'c', 'x')
             ORDER BY h.id DESC LIMIT 1) AS last ON true
      LEFT JOIN LATERAL (
            SELECT count(*) >= failure_threshold AND bool_and(f.state = 'f')
                   AND (retry_ms = 0 OR max(f.enqueued_at) > clock_timestamp() - make_interval(secs => retry_ms / 1000.0))
                   AS is_blocked,
                   (array_agg(f.error_message ORDER BY f.id DESC))[1] AS error_message
              FROM (SELECT h.id, h.state, h.enqueued_at, h.error_message FROM compaction h
                     WHERE h.db = w.db AND h.tbl = w.tbl AND h.partition IS NOT DISTINCT FROM w.partition
                       AND (h.state IN ('s', 'f') OR h.state = 'r' AND h.committed_at IS NOT NULL)
                     ORDER BY h.id DESC LIMIT failure_threshold) AS f) AS past ON true
     WHERE (after_at IS NULL
            OR (w.at, w.db, w.tbl, coalesce(w.partition, ''))
               > (after_at, after_db, after_tbl, coalesce(after_partition, '')))
       AND (w.written_at >= to_timestamp(since_ms / 1000.0) OR w.too_many OR w.too_old OR last.state IN ('a', 'f')
            OR EXISTS (SELECT 1 FROM compaction_decision v
                        WHERE v.db = w.db AND v.tbl = w.tbl AND v.service = 'initiator' AND v.code = ANY (look_again)
                          AND (v.partition IS NULL OR v.partition = w.partition))
            OR EXISTS (SELECT 1 FROM compaction k
                        WHERE k.db = w.db AND k.tbl = w.tbl AND k.partition IS NOT DISTINCT FROM w.partition
                          AND k.state IN ('r', 's') AND k.type <> 'c'
                          AND greatest(k.committed_at, k.ended_at) >= to_timestamp(since_ms / 1000.0))
            OR EXISTS (SELECT 1 FROM compaction_setting_change s
                        WHERE s.db = w.db AND s.tbl IN (w.tbl, '')
                          AND s.changed_at >= to_timestamp(since_ms / 1000.0)))
       AND NOT EXISTS (
            SELECT 1 FROM compaction b
             WHERE b.db = w.db AND b.tbl = w.tbl AND b.partition IS NOT DISTINCT FROM w.partition
               AND b.state IN ('i', 'w'))
     ORDER BY w.at, w.db, w.tbl, coalesce(w.partition, '') LIMIT at_most;
$$;
