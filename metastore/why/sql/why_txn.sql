-- One transaction, no row if it is not on record; times are epoch milliseconds. `left_in` are tables and partitions in
-- which an aborted one may have left files.
CREATE OR REPLACE FUNCTION why_txn(in_txn bigint)
RETURNS TABLE (state text, type smallint, user_name text, host_name text, agent_info text, started_ms bigint,
               heartbeat_ms bigint, ended_ms bigint, abort_reason text, left_in text[])
LANGUAGE sql STABLE AS $$
    SELECT t.state, t.type, t.user_name, t.host_name, t.agent_info, epoch_ms(t.started_at), epoch_ms(t.heartbeat_at),
           epoch_ms(t.ended_at), t.abort_reason,
           ARRAY(SELECT DISTINCT concat_ws('/', c.db || '.' || c.tbl, c.partition)
                   FROM txn_component c WHERE c.txn_id = t.txn_id AND t.state = 'a' ORDER BY 1 LIMIT 20)
      FROM txn t WHERE t.txn_id = in_txn;
$$;
