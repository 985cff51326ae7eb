-- Makes transactions that have ended from the start, for write ids that nobody here gave out: aborted ones with a reason,
-- or committed ones without. Returns the largest, the others are the ones right below it.
CREATE OR REPLACE FUNCTION seed_ended_txns(how_many integer, in_user text, in_host text, reason text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    newest bigint;
    instant CONSTANT timestamptz := clock_timestamp();
BEGIN
    UPDATE txn_counter SET last_id = last_id + how_many, counted_at = counted_at + how_many RETURNING last_id INTO newest;
    INSERT INTO txn (txn_id, state, type, user_name, host_name, agent_info, started_at, heartbeat_at, opened_snapshot,
                     ended_at, ended_xid, abort_reason)
    SELECT id, CASE WHEN reason IS NULL THEN 'c' ELSE 'a' END, 0, in_user, in_host, '', instant, instant,
           pg_current_snapshot(), instant, pg_current_xact_id(), reason
      FROM generate_series(newest - how_many + 1, newest) AS id;
    RETURN newest;
END
$$;
