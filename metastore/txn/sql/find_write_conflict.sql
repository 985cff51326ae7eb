-- The first committed change that a transaction's updates and deletes collide with (transactions.md §1.6): same
-- table, same partition or one of the two writes to the whole table, by another transaction that had not committed
-- when this one was opened. The test is exact, being made by database transactions instead of by ids.
CREATE OR REPLACE FUNCTION find_write_conflict(writer bigint, opened pg_snapshot)
RETURNS TABLE (db text, tbl text, partition text, operation text, other_txn bigint, other_commit_id bigint,
               other_operation text)
LANGUAGE sql STABLE AS $$
    SELECT mine.db, mine.tbl, coalesce(mine.partition, theirs.partition), mine.operation, theirs.txn_id,
           theirs.commit_id, theirs.operation
      FROM txn_component mine
      JOIN write_set theirs ON theirs.db = mine.db AND theirs.tbl = mine.tbl
     WHERE mine.txn_id = writer AND mine.operation IN ('u', 'd')
       AND (mine.partition IS NULL OR theirs.partition IS NULL OR mine.partition = theirs.partition)
       AND theirs.txn_id <> writer
       AND theirs.committed_xid >= pg_snapshot_xmin(opened)
       AND NOT pg_visible_in_snapshot(theirs.committed_xid, opened)
     ORDER BY theirs.committed_xid, theirs.txn_id, mine.partition
     LIMIT 1;
$$;
