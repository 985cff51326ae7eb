-- All open and aborted transactions in detail, ascending, each with the high-water mark of the same instant; a row
-- without a transaction when there are none (transactions.md §1.4). Times are epoch milliseconds.
CREATE OR REPLACE FUNCTION get_open_txns_info()
RETURNS TABLE (
    high_water_mark bigint, txn_id bigint, state text, user_name text, host_name text, agent_info text,
    heartbeat_count integer, abort_reason text, started_ms bigint, heartbeat_ms bigint, type smallint
)
LANGUAGE sql STABLE AS $$
    SELECT c.last_id, t.txn_id, t.state, t.user_name, t.host_name, t.agent_info, t.heartbeat_count, t.abort_reason,
           epoch_ms(t.started_at), epoch_ms(t.heartbeat_at), t.type
      FROM txn_counter c LEFT JOIN txn t ON t.state IN ('o', 'a')
     ORDER BY t.txn_id;
$$;
