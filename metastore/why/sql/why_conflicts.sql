-- The committed changes with which the commit of an open transaction would collide, the first one of each table and
-- partition; times are epoch milliseconds. Of a transaction that is forgotten nobody knows whose it was.
CREATE OR REPLACE FUNCTION why_conflicts(in_txn bigint)
RETURNS TABLE (db text, tbl text, partition text, other_txn bigint, ended_ms bigint, user_name text, host_name text,
               agent_info text)
LANGUAGE sql STABLE AS $$
    SELECT f.db, f.tbl, f.partition, f.txn_id, epoch_ms(o.ended_at), o.user_name, o.host_name, o.agent_info
      FROM (SELECT DISTINCT ON (mine.db, mine.tbl, place.partition)
                   mine.db, mine.tbl, place.partition, theirs.txn_id
              FROM txn me
              JOIN txn_component mine ON mine.txn_id = me.txn_id AND mine.operation IN ('u', 'd')
             CROSS JOIN LATERAL find_write_conflict(mine.db, mine.tbl, mine.partition, me.txn_id, me.opened_snapshot)
                        AS theirs
             CROSS JOIN LATERAL (SELECT coalesce(mine.partition, nullif(theirs.partition, ''))) AS place (partition)
             WHERE me.txn_id = in_txn AND me.state = 'o'
             ORDER BY mine.db, mine.tbl, place.partition, theirs.committed_xid, theirs.txn_id) AS f
      LEFT JOIN txn o ON o.txn_id = f.txn_id
     ORDER BY f.db, f.tbl, f.partition
     LIMIT 20;
$$;
