-- Stores how many deltas tables and partitions have (transactions.md §4.12), each number only while it reaches its
-- threshold: `counts` is an array of objects {"db", "tbl", "partition", "obsolete", "active", "small"}, in which each
-- target is once. Only what has changed is written; returns how much that was.
CREATE OR REPLACE FUNCTION set_delta_counts(counts jsonb, threshold integer, obsolete_threshold integer) RETURNS bigint
LANGUAGE sql AS $$
    WITH asked AS MATERIALIZED (
        SELECT c.db, c.tbl, c.partition, kind.type, kind.value, kind.threshold
          FROM jsonb_to_recordset(counts)
               AS c (db text, tbl text, partition text, obsolete integer, active integer, small integer)
         CROSS JOIN LATERAL (VALUES (0::smallint, c.obsolete, set_delta_counts.obsolete_threshold),
                                    (1::smallint, c.active, set_delta_counts.threshold),
                                    (2::smallint, c.small, set_delta_counts.threshold)) AS kind (type, value, threshold)
    ), forgotten AS (
        DELETE FROM compaction_metric m USING asked a
         WHERE a.value < a.threshold AND m.db = a.db AND m.tbl = a.tbl AND m.partition IS NOT DISTINCT FROM a.partition
           AND m.type = a.type
        RETURNING 1
    ), stored AS (
        INSERT INTO compaction_metric AS m (db, tbl, partition, type, value, version)
        SELECT a.db, a.tbl, a.partition, a.type, a.value, 1 FROM asked a
         WHERE a.value >= a.threshold AND NOT EXISTS (  -- a conflict would lock the row, which is a write, too
                SELECT 1 FROM compaction_metric s
                 WHERE s.db = a.db AND s.tbl = a.tbl AND s.partition IS NOT DISTINCT FROM a.partition
                   AND s.type = a.type AND s.value = a.value)
         ORDER BY a.db, a.tbl, a.partition, a.type
        ON CONFLICT (db, tbl, partition, type) DO UPDATE SET value = excluded.value, version = m.version + 1
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM forgotten) + (SELECT count(*) FROM stored);
$$;
