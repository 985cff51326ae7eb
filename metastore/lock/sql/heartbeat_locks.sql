-- Heartbeats lock requests, or the transactions they belong to (transactions.md §3.5). Rows that others work on in this
-- instant are passed over: they are alive.
CREATE OR REPLACE FUNCTION heartbeat_locks(beating bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE txn t SET heartbeat_at = clock_timestamp(), heartbeat_count = t.heartbeat_count + 1
      FROM (SELECT k.ctid AS place FROM txn k
             WHERE k.txn_id = ANY (ARRAY(SELECT l.txn_id FROM lock_component l
                                          WHERE l.lock_id = ANY (beating) AND l.txn_id <> 0))
               AND k.state = 'o'
             ORDER BY k.txn_id FOR NO KEY UPDATE SKIP LOCKED) AS alive
     WHERE t.ctid = alive.place;
    UPDATE lock_component c SET heartbeat_at = clock_timestamp()
      FROM (SELECT l.ctid AS place FROM lock_component l
             WHERE l.lock_id = ANY (beating) AND l.txn_id = 0
             ORDER BY l.lock_id, l.component FOR NO KEY UPDATE SKIP LOCKED) AS alive
     WHERE c.ctid = alive.place;
END
$$;
