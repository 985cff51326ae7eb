-- Forgets what became of compactions, and of what drops left to the Cleaner, of tables and partitions that are not in the
-- catalogue: a drop forgets what is there by then, and this is what came later. What ended less than `timeout_ms` ago
-- stays. Up to `at_most` go; returns how many did.
CREATE OR REPLACE FUNCTION purge_gone_history(timeout_ms bigint, at_most integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    purged bigint;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);  -- what a crash brings back goes again
    DELETE FROM compaction WHERE id = ANY (ARRAY(
        SELECT c.id FROM compaction c
         WHERE c.ended_at < clock_timestamp() - make_interval(secs => timeout_ms / 1000.0)
           AND NOT EXISTS (SELECT 1 FROM tbl t
                            WHERE t.database = c.db AND t.name = c.tbl
                              AND (c.partition IS NULL
                                   OR EXISTS (SELECT 1 FROM partition p
                                               WHERE p.table_id = t.id AND p.name = c.partition)))
         LIMIT at_most));
    GET DIAGNOSTICS purged = ROW_COUNT;
    RETURN purged;
END
$$;
