-- The open transactions for which the files that a compaction replaced are kept, the oldest first: those that
-- clean_outlook waits for, of which it names the first.
CREATE OR REPLACE FUNCTION cleaning_readers(in_compaction bigint, at_most integer)
RETURNS TABLE (txn_id bigint, user_name text, host_name text, agent_info text, started_ms bigint, heartbeat_ms bigint,
               has_named boolean)
LANGUAGE sql STABLE AS $$
    SELECT t.txn_id, t.user_name, t.host_name, t.agent_info, epoch_ms(t.started_at), epoch_ms(t.heartbeat_at),
           bool_or(n.need = 'named')
      FROM compaction c
     CROSS JOIN LATERAL clean_needs(c.next_txn_id) n
      JOIN txn t ON t.txn_id = n.txn_id
     WHERE c.id = in_compaction AND c.state = 'r'
       AND (n.need = 'unnamed'
            OR n.db = c.db AND n.tbl = c.tbl
               AND (n.partition = c.partition OR n.partition IS NULL OR c.partition IS NULL))
     GROUP BY t.txn_id
     ORDER BY t.txn_id LIMIT at_most;
$$;
