-- Puts transactions on record that have aborted, and of which nothing need be on record any more: what is, stays.
CREATE OR REPLACE FUNCTION put_aborted_txns(txn_ids bigint[], in_user text, in_host text, reason text) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO txn (txn_id, state, type, user_name, host_name, agent_info, started_at, heartbeat_at, opened_snapshot,
                     ended_at, ended_xid, abort_reason)
    SELECT id, 'a', 0, in_user, in_host, '', clock_timestamp(), clock_timestamp(), pg_current_snapshot(),
           clock_timestamp(), pg_current_xact_id(), reason
      FROM unnest(txn_ids) AS id
    ON CONFLICT DO NOTHING;
$$;
