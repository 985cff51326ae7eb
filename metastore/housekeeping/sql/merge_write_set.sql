-- Of several committed changes to the same data the last one is enough: who was opened before an earlier one was
-- committed was so before the last one too, and collides with that. So an old transaction holds back one row for each
-- table or partition that is changed. Looks at up to `at_most` rows committed by database transactions above
-- `after`; returns how many these were, how many of them went, and from where to go on.
--
-- Last is here what has the largest database transaction. Those that were under way at once may have committed in another
-- order: a row stays as long as some open transaction has its snapshot from just then. A rebalance stays in any case:
-- who can prove that changes of others are of other rows cannot where all rows have other ids.
CREATE OR REPLACE FUNCTION merge_write_set(settled xid8, after xid8, at_most integer)
RETURNS TABLE (examined bigint, merged bigint, last_xid xid8)
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    xmins xid8[];
    xmaxs xid8[];
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);  -- what a crash brings back goes again
    SELECT coalesce(array_agg(pg_snapshot_xmin(t.opened_snapshot) ORDER BY pg_snapshot_xmin(t.opened_snapshot)), '{}'),
           coalesce(array_agg(pg_snapshot_xmax(t.opened_snapshot) ORDER BY pg_snapshot_xmax(t.opened_snapshot)), '{}')
      INTO xmins, xmaxs
      FROM txn t WHERE t.state = 'o' AND t.type <> 2;
    RETURN QUERY
        WITH chunk AS MATERIALIZED (
            SELECT s.ctid AS place, s.db, s.tbl, s.partition, s.txn_id, s.committed_xid, s.operation,
                   -- Snapshots that begin below it and do not end below it.
                   width_bucket(s.committed_xid, xmins) > width_bucket(s.committed_xid, xmaxs) AS is_in_doubt
              FROM write_set s
             WHERE s.committed_xid > after AND s.committed_xid < settled
             ORDER BY s.committed_xid FETCH FIRST at_most ROWS WITH TIES
        ), gone AS (
            DELETE FROM write_set WHERE ctid = ANY (ARRAY(
                SELECT c.place FROM chunk c
                 CROSS JOIN LATERAL (
                       -- The next one in the order of the index; if that is of something else, there is none.
                       SELECT o.db, o.tbl, o.partition, o.txn_id FROM write_set o
                        WHERE (o.db, o.tbl, o.partition, o.committed_xid)
                              > (c.db, c.tbl, c.partition, c.committed_xid)
                        ORDER BY o.db, o.tbl, o.partition, o.committed_xid LIMIT 1) AS next
                 WHERE NOT c.is_in_doubt AND c.operation <> 'r' AND next.db = c.db AND next.tbl = c.tbl AND next.partition = c.partition
                   -- Clients ask for the largest transaction that they collide with.
                   AND next.txn_id > c.txn_id))
            RETURNING 1
        )
        SELECT count(*), (SELECT count(*) FROM gone), coalesce(max(c.committed_xid), after) FROM chunk c;
END
$$;
