-- Who has the lowest write id of a table that is open: nothing from there on can be compacted. No row if there is none.
CREATE OR REPLACE FUNCTION open_writer(in_db text, in_tbl text)
RETURNS TABLE (txn_id bigint, user_name text, host_name text, agent_info text, started_ms bigint)
LANGUAGE sql STABLE AS $$
    SELECT t.txn_id, t.user_name, t.host_name, t.agent_info, epoch_ms(t.started_at)
      FROM (SELECT u.txn_id FROM unresolved_write_id u
             WHERE u.db = in_db AND u.tbl = in_tbl AND NOT u.is_aborted ORDER BY u.write_id LIMIT 1) AS lowest
      JOIN txn t USING (txn_id);
$$;
