-- Lock components, those held first, narrowed by whatever is not null (transactions.md §3.7). Times are epoch
-- milliseconds.
CREATE OR REPLACE FUNCTION show_locks(in_db text, in_tbl text, in_partition text, in_txn bigint)
RETURNS TABLE (
    lock_id bigint, component integer, txn_id bigint, db text, tbl text, partition text, type text, state text,
    user_name text, host_name text, agent_info text, heartbeat_ms bigint, acquired_ms bigint, blocker_lock bigint,
    blocker_component integer
)
LANGUAGE sql STABLE AS $$
    SELECT l.lock_id, l.component, l.txn_id, l.db, nullif(l.tbl, ''), nullif(l.partition, ''), l.type, l.state,
           l.user_name, l.host_name, l.agent_info, epoch_ms(l.heartbeat_at), epoch_ms(l.acquired_at),
           l.blocker_lock, l.blocker_component
      FROM lock_component l
     WHERE (in_db IS NULL OR l.db = in_db) AND (in_tbl IS NULL OR l.tbl = in_tbl)
       AND (in_partition IS NULL OR l.partition = in_partition) AND (in_txn IS NULL OR l.txn_id = in_txn)
     ORDER BY l.state, position(l.type IN 'rwxe'), l.lock_id, l.component;
$$;
