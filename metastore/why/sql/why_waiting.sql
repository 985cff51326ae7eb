-- The requests that wait, of one lock or of one transaction (the other argument is null), each component with what is in
-- its way: found as the request's own check finds it (find_blockers). `blocker_since_ms` is when the blocker got its
-- lock, or its transaction was opened.
CREATE OR REPLACE FUNCTION why_waiting(in_lock bigint, in_txn bigint, at_most integer)
RETURNS TABLE (lock_id bigint, component integer, db text, tbl text, partition text, type text,
               blocker_lock bigint, blocker_txn bigint, blocker_db text, blocker_tbl text, blocker_partition text,
               blocker_type text, blocker_state text, user_name text, host_name text, agent_info text,
               blocker_since_ms bigint)
LANGUAGE sql STABLE AS $$
    SELECT l.lock_id, l.component, l.db, nullif(l.tbl, ''), nullif(l.partition, ''), l.type,
           b.lock_id, nullif(b.txn_id, 0), h.db, nullif(h.tbl, ''), nullif(h.partition, ''), b.type, b.state,
           h.user_name, h.host_name, h.agent_info, epoch_ms(coalesce(h.acquired_at, t.started_at, h.heartbeat_at))
      FROM lock_component l
     CROSS JOIN LATERAL find_blockers(l.lock_id, l.txn_id, l.type, l.db, l.tbl, l.partition) AS b
      JOIN lock_component h ON h.lock_id = b.lock_id AND h.component = b.component
      LEFT JOIN txn t ON t.txn_id = b.txn_id
     WHERE l.state = 'w' AND (l.lock_id = in_lock OR (l.txn_id = in_txn AND in_txn <> 0))
     ORDER BY l.lock_id, l.component, b.state, b.lock_id, b.component LIMIT at_most;
$$;
