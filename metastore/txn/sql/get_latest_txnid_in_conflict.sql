-- The largest transaction whose commit a transaction's updates and deletes would collide with, 0 if there is none
-- (transactions.md §2.4).
CREATE OR REPLACE FUNCTION get_latest_txnid_in_conflict(writer bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT coalesce(max(theirs.txn_id), 0)
      FROM txn me
      JOIN txn_component mine ON mine.txn_id = me.txn_id AND mine.operation IN ('u', 'd')
      JOIN write_set theirs ON theirs.db = mine.db AND theirs.tbl = mine.tbl
     WHERE me.txn_id = writer AND theirs.txn_id <> writer
       AND (mine.partition IS NULL OR theirs.partition IS NULL OR mine.partition = theirs.partition)
       AND theirs.committed_xid >= pg_snapshot_xmin(me.opened_snapshot)
       AND NOT pg_visible_in_snapshot(theirs.committed_xid, me.opened_snapshot);
$$;
