-- Opens `how_many` transactions and returns their ids, ascending and contiguous (transactions.md §1.2).
-- No row is returned, and nothing opened, if there would be more than `max_open` open ones then.
--
-- The limit is exact without a count per call: no more can be open than at the last count plus all opened since.
-- A repetition after a lost connection leaves transactions that nobody heartbeats: they time out.
CREATE OR REPLACE FUNCTION open_txns(
    how_many integer, txn_type integer, user_name text, host_name text, agent_info text, max_open bigint
) RETURNS TABLE (txn_id bigint)
LANGUAGE plpgsql AS $$
DECLARE
    counter txn_counter;
    instant timestamptz := clock_timestamp();
    open_now bigint;
BEGIN
    UPDATE txn_counter SET last_id = last_id + how_many RETURNING * INTO counter;
    IF counter.counted_open + counter.last_id - counter.counted_at > max_open THEN
        SELECT count(*) INTO open_now
          FROM (SELECT 1 FROM txn t WHERE t.state = 'o' LIMIT max_open + 1) AS counted;
        IF open_now + how_many > max_open THEN
            UPDATE txn_counter SET last_id = last_id - how_many;
            RETURN;
        END IF;
        UPDATE txn_counter SET counted_open = open_now + how_many, counted_at = last_id;
    END IF;
    -- A statement of its own: its snapshot is taken while the counter is locked, see txn.opened_snapshot.
    RETURN QUERY
        INSERT INTO txn (txn_id, state, type, user_name, host_name, agent_info, started_at, heartbeat_at,
                         opened_snapshot)
        SELECT id, 'o', txn_type, open_txns.user_name, open_txns.host_name, open_txns.agent_info, instant, instant,
               pg_current_snapshot()
          FROM generate_series(counter.last_id - how_many + 1, counter.last_id) AS id
        RETURNING txn.txn_id;
END
$$;
