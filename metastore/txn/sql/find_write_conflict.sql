-- Committed changes that a change of a table or of one of its partitions collides with (transactions.md §1.6): by
-- another transaction, which had not committed for the snapshot `opened`. The test is exact, being made by database
-- transactions instead of by ids. The whole table, null here, and each of its partitions are the same data.
CREATE OR REPLACE FUNCTION find_write_conflict(
    in_db text, in_tbl text, in_partition text, writer bigint, opened pg_snapshot
) RETURNS TABLE (partition text, operation text, txn_id bigint, commit_id bigint, committed_xid xid8)
LANGUAGE sql STABLE AS $$
    SELECT w.partition, w.operation, w.txn_id, w.commit_id, w.committed_xid
      FROM write_set w
     WHERE in_partition IS NOT NULL AND w.db = in_db AND w.tbl = in_tbl AND w.partition = ANY (ARRAY[in_partition, ''])
       AND w.committed_xid >= pg_snapshot_xmin(opened) AND NOT pg_visible_in_snapshot(w.committed_xid, opened)
       AND w.txn_id <> writer
    UNION ALL
    SELECT w.partition, w.operation, w.txn_id, w.commit_id, w.committed_xid
      FROM write_set w
     WHERE in_partition IS NULL AND w.db = in_db AND w.tbl = in_tbl
       AND w.committed_xid >= pg_snapshot_xmin(opened) AND NOT pg_visible_in_snapshot(w.committed_xid, opened)
       AND w.txn_id <> writer;
$$;
