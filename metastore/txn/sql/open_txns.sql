-- Opens transactions for several requests at once, `how_many[i]` of them for the i-th, and returns the smallest id. The
-- ids are contiguous, those of an earlier request smaller (transactions.md §1.2).
-- No row is returned, and nothing opened, if there would be more than `max_open` open ones then.
--
-- The counter stays locked until its new value is durable, so requests that come meanwhile are better opened together.
-- The limit is exact without a count per call: no more can be open than at the last count plus all opened since.
-- A repetition after a lost connection leaves transactions that nobody heartbeats: they time out.
CREATE OR REPLACE FUNCTION open_txns(
    how_many integer[], txn_types smallint[], user_names text[], host_names text[], agent_infos text[], max_open bigint
) RETURNS TABLE (first_txn_id bigint)
LANGUAGE plpgsql AS $$
DECLARE
    counter txn_counter;
    instant timestamptz := clock_timestamp();
    total integer := (SELECT sum(n) FROM unnest(how_many) AS n);
    open_now bigint;
BEGIN
    UPDATE txn_counter SET last_id = last_id + total RETURNING * INTO counter;
    IF counter.counted_open + counter.last_id - counter.counted_at > max_open THEN
        SELECT count(*) INTO open_now
          FROM (SELECT 1 FROM txn t WHERE t.state = 'o' LIMIT max_open + 1) AS counted;
        IF open_now + total > max_open THEN
            UPDATE txn_counter SET last_id = last_id - total;
            RETURN;
        END IF;
        UPDATE txn_counter SET counted_open = open_now + total, counted_at = last_id;
    END IF;
    first_txn_id := counter.last_id - total + 1;
    -- A statement of its own: its snapshot is taken while the counter is locked, see txn.opened_snapshot.
    INSERT INTO txn (txn_id, state, type, user_name, host_name, agent_info, started_at, heartbeat_at, opened_snapshot)
    SELECT first_txn_id - 1 + row_number() OVER (ORDER BY r.request), 'o', r.type, r.user_name, r.host_name,
           r.agent_info, instant, instant, pg_current_snapshot()
      FROM unnest(how_many, txn_types, user_names, host_names, agent_infos)
           WITH ORDINALITY AS r (n, type, user_name, host_name, agent_info, request),
           generate_series(1, r.n);
    RETURN NEXT;
END
$$;
