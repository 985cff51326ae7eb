-- Forgets what services decided (compaction_decision), and the deltas counted with it, of tables and partitions that are
-- not in the catalogue: put down by one that had looked just before the drop. Decisions younger than `timeout_ms` stay. Up
-- to `at_most` go; returns how many did.
CREATE OR REPLACE FUNCTION purge_decisions(timeout_ms bigint, at_most integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    purged bigint;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);  -- what a crash brings back goes again
    WITH gone AS (
        DELETE FROM compaction_decision WHERE ctid = ANY (ARRAY(
            SELECT v.ctid FROM compaction_decision v
             WHERE v.decided_at < clock_timestamp() - make_interval(secs => timeout_ms / 1000.0)
               AND NOT EXISTS (SELECT 1 FROM tbl t
                                WHERE t.database = v.db AND t.name = v.tbl
                                  AND (v.partition IS NULL
                                       OR EXISTS (SELECT 1 FROM partition p
                                                   WHERE p.table_id = t.id AND p.name = v.partition)))
             LIMIT at_most))
        RETURNING db, tbl, partition
    ), counts AS (
        DELETE FROM compaction_metric m USING gone g
         WHERE m.db = g.db AND m.tbl = g.tbl AND m.partition IS NOT DISTINCT FROM g.partition
    )
    SELECT count(*) INTO purged FROM gone;
    RETURN purged;
END
$$;
