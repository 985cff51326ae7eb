-- The figures of transactions, locks and write ids by their names (transactions.md §4.12); ages in seconds, 0 where
-- there is nothing. Rows are counted up to `at_most`, in indexes where possible.
CREATE OR REPLACE FUNCTION acid_gauges(aborts_threshold bigint, at_most bigint)
RETURNS TABLE (name text, value double precision)
LANGUAGE plpgsql STABLE SET enable_seqscan = off AS $$
DECLARE
    instant timestamptz := clock_timestamp();
    open_all bigint;
    open_repl bigint;
BEGIN
    SELECT count(*), count(*) FILTER (WHERE t.type = 1) INTO open_all, open_repl FROM txn t WHERE t.state = 'o';
    RETURN QUERY VALUES
        ('num_open_transactions', open_all::double precision),
        ('num_open_repl_transactions', open_repl),
        ('num_open_non_repl_transactions', open_all - open_repl);
    RETURN QUERY
        SELECT format('oldest_open_%s_txn_%s', kind.name, figure.name), coalesce(figure.value, 0)
          FROM (VALUES ('repl', true), ('non_repl', false)) AS kind (name, is_repl)
          LEFT JOIN LATERAL (SELECT t.txn_id, t.started_at FROM txn t
                              WHERE t.state = 'o' AND (t.type = 1) = kind.is_repl
                              ORDER BY t.txn_id LIMIT 1) AS oldest ON true
         CROSS JOIN LATERAL (VALUES ('id', oldest.txn_id::double precision),
                                    ('age_in_sec', extract(epoch FROM instant - oldest.started_at)))
                    AS figure (name, value);
    RETURN QUERY
        SELECT 'num_aborted_transactions', count(*)::double precision
          FROM (SELECT 1 FROM txn t WHERE t.state = 'a' LIMIT at_most) AS counted;
    RETURN QUERY
        SELECT 'oldest_aborted_txn_' || figure.name, coalesce(figure.value, 0)
          FROM (SELECT 1) AS always
          LEFT JOIN LATERAL (SELECT t.txn_id, t.started_at FROM txn t
                              WHERE t.state = 'a' ORDER BY t.txn_id LIMIT 1) AS oldest ON true
         CROSS JOIN LATERAL (VALUES ('id', oldest.txn_id::double precision),
                                    ('age_in_sec', extract(epoch FROM instant - oldest.started_at)))
                    AS figure (name, value);
    RETURN QUERY
        SELECT figure.name, figure.value
          FROM (SELECT count(*) AS n, min(l.acquired_at) AS oldest
                  FROM (SELECT c.acquired_at FROM lock_component c LIMIT at_most) AS l) AS locks
         CROSS JOIN LATERAL (VALUES ('num_locks', locks.n::double precision),
                                    ('oldest_lock_age_in_sec',
                                     coalesce(extract(epoch FROM instant - locks.oldest), 0)))
                    AS figure (name, value);
    RETURN QUERY
        SELECT 'compaction_num_txn_to_writeid', count(*)::double precision
          FROM (SELECT 1 FROM write_id LIMIT at_most) AS counted
        UNION ALL
        SELECT 'compaction_num_completed_txn_components', count(*)
          FROM (SELECT 1 FROM completed_component LIMIT at_most) AS counted
        UNION ALL
        SELECT 'tables_with_x_aborted_transactions', count(*)
          FROM (SELECT 1 FROM unresolved_write_id u WHERE u.is_aborted
                 GROUP BY u.db, u.tbl HAVING count(*) > aborts_threshold) AS crowded
        UNION ALL
        SELECT 'oldest_ready_for_cleaning_age_in_sec',
               coalesce(extract(epoch FROM instant - min(c.committed_at)), 0)
          FROM compaction c WHERE c.state = 'r';
END
$$;
