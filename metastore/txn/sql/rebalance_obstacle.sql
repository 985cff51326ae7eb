-- Who would fail if a rebalance of a table or partition committed now, since rows that it may yet change would have other
-- ids than in its snapshot; no row if there is nobody. One that waits for its lock is told first: it does not get further
-- while the rebalance has the table.
--   what waits for a shared write lock of the data (another engine's exclusive one is followed by a look for such changes)
--   what may begin nothing again, as a block of statements, and has named the table, or none (see add_min_history)
--   of those that have not said, other engines', which lock all that a statement needs at once: what has not locked
--     anything yet, and is older than the `rebalance`. Younger ones come all the time, and most of them do not write.
CREATE OR REPLACE FUNCTION rebalance_obstacle(rebalance bigint, in_db text, in_tbl text, in_partition text)
RETURNS TABLE (txn_id bigint, user_name text, host_name text, agent_info text, started_ms bigint, is_waiting boolean)
LANGUAGE sql STABLE AS $$
    SELECT t.txn_id, t.user_name, t.host_name, t.agent_info, epoch_ms(t.started_at), w.is_waiting
      FROM txn t
     CROSS JOIN LATERAL (
            SELECT EXISTS (SELECT 1 FROM lock_component l
                            WHERE l.txn_id = t.txn_id AND l.state = 'w' AND l.type = 'w'
                              AND l.db = in_db AND l.tbl = in_tbl
                              AND (in_partition IS NULL OR l.partition IN ('', in_partition))) AS is_waiting,
                   EXISTS (SELECT 1 FROM min_history_write_id m WHERE m.txn_id = t.txn_id) AS has_named) AS w
     WHERE t.state = 'o' AND t.type IN (0, 4)  -- DEFAULT, MATER_VIEW_REBUILD: the others change no rows
       AND t.may_begin_again IS NOT TRUE
       AND (w.is_waiting
            OR t.may_begin_again IS NULL AND t.txn_id < rebalance AND NOT w.has_named
               AND NOT EXISTS (SELECT 1 FROM lock_component l WHERE l.txn_id = t.txn_id)
            OR NOT t.may_begin_again
               AND (NOT w.has_named OR EXISTS (SELECT 1 FROM min_history_write_id m
                                                WHERE m.txn_id = t.txn_id AND m.db = in_db AND m.tbl = in_tbl)))
     ORDER BY w.is_waiting DESC, t.txn_id
     LIMIT 1
$$;
