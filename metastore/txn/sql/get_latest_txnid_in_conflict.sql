-- The largest transaction whose commit a transaction's updates and deletes would collide with, 0 if there is none
-- (transactions.md §2.4).
CREATE OR REPLACE FUNCTION get_latest_txnid_in_conflict(writer bigint) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT coalesce(max(theirs.txn_id), 0)
      FROM txn me
      JOIN txn_component mine ON mine.txn_id = me.txn_id AND mine.operation IN ('u', 'd')
     CROSS JOIN LATERAL find_write_conflict(mine.db, mine.tbl, mine.partition, me.txn_id, me.opened_snapshot) AS theirs
     WHERE me.txn_id = writer;
$$;
