-- Removes records of committed writes that a later one to the same table or partition makes superfluous: the later one
-- has a larger write id, and if this was an update or delete it is one too (transactions.md §5). Looks at up to
-- `at_most` records of commits after `after`, in their order; returns how many these were, how many of them went, and
-- from where to go on.
CREATE OR REPLACE FUNCTION purge_duplicates(after timestamptz, at_most integer)
RETURNS TABLE (examined bigint, purged bigint, last_at timestamptz)
LANGUAGE plpgsql SET enable_seqscan = off AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);  -- what a crash brings back goes again
    RETURN QUERY
        WITH chunk AS MATERIALIZED (
            SELECT c.ctid AS place, c.* FROM completed_component c
             WHERE c.committed_at > coalesce(after, '-infinity') ORDER BY c.committed_at
             FETCH FIRST at_most ROWS WITH TIES
        ), gone AS (
            DELETE FROM completed_component WHERE ctid = ANY (ARRAY(
                SELECT c.place FROM chunk c
                 WHERE CASE WHEN c.partition IS NULL THEN EXISTS (
                           SELECT 1 FROM completed_component o
                            WHERE o.db = c.db AND o.tbl = c.tbl AND o.partition IS NULL
                              AND o.write_id > coalesce(c.write_id, 0) AND o.committed_at >= c.committed_at
                              AND (o.update_delete OR NOT c.update_delete))
                       ELSE EXISTS (
                           SELECT 1 FROM completed_component o
                            WHERE o.db = c.db AND o.tbl = c.tbl AND o.partition = c.partition
                              AND o.write_id > coalesce(c.write_id, 0) AND o.committed_at >= c.committed_at
                              AND (o.update_delete OR NOT c.update_delete)) END
                    -- A write that never asked for its write id: of these the last one is enough.
                    OR c.write_id IS NULL AND EXISTS (
                           SELECT 1 FROM completed_component o
                            WHERE o.db = c.db AND o.tbl = c.tbl AND o.partition IS NOT DISTINCT FROM c.partition
                              AND o.write_id IS NULL AND o.committed_at > c.committed_at
                              AND (o.update_delete OR NOT c.update_delete))))
            RETURNING 1
        )
        SELECT count(*), (SELECT count(*) FROM gone), coalesce(max(c.committed_at), after) FROM chunk c;
END
$$;
