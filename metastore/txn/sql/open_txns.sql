-- Opens a transaction for each element of the arrays; returns the smallest id, and how many were opened: the ids go up
-- from there in the order of the elements (transactions.md §1.2). Of requests for several at once `sizes` are the lengths.
-- If there would be more than `max_open` open ones then, only as many requests are served, from the first on, as find
-- room; and from then on none until a tenth is free again.
-- `uses` numbers, from 1, the element to which a table of `dbs` and `tbls` belongs: those that are named with the opening
-- hold the Cleaner back on these tables from their first moment, and on no others (see add_min_history).
--
-- Openings are not flushed: they are young, see recover_from_crash for what a crash of the database does to them. Ids are
-- flushed beforehand, 256 at a time, so none is given out twice.
--
-- The counter stays locked to the end, so requests that come meanwhile are better opened together.
-- The limit is exact without a count per call: no more can be open than at the last count plus all opened since.
-- A repetition after a lost connection leaves transactions that nobody heartbeats: they time out.
CREATE OR REPLACE FUNCTION open_txns(
    sizes integer[], txn_types smallint[], user_names text[], host_names text[], agent_infos text[],
    may_begin_again boolean[], uses integer[], dbs text[], tbls text[], max_open bigint
) RETURNS TABLE (first_txn_id bigint, opened bigint)
LANGUAGE plpgsql AS $$
DECLARE
    counter txn_counter;
    instant timestamptz := clock_timestamp();
    asked bigint := cardinality(txn_types);
    room bigint;
    open_now bigint;
    unflushed text;
    reserve CONSTANT bigint := 256;
BEGIN
    UPDATE txn_counter
       SET last_id = last_id + asked,
           reserved_id = CASE WHEN last_id + asked > reserved_id THEN last_id + asked + reserve ELSE reserved_id END
    RETURNING * INTO counter;
    IF counter.reserved_id < counter.last_id + reserve THEN
        unflushed := set_config('synchronous_commit', 'off', true);
    END IF;
    opened := asked;
    IF counter.is_full OR counter.counted_open + counter.last_id - counter.counted_at > max_open THEN
        SELECT count(*) INTO open_now
          FROM (SELECT 1 FROM txn t WHERE t.state = 'o' LIMIT max_open + 1) AS counted;
        room := CASE WHEN counter.is_full AND open_now * 10 >= max_open * 9 THEN 0 ELSE max_open - open_now END;
        SELECT coalesce(max(s.running), 0) INTO opened
          FROM (SELECT sum(r.n) OVER (ORDER BY r.place) AS running
                  FROM unnest(sizes) WITH ORDINALITY AS r (n, place)) AS s
         WHERE s.running <= room;
        UPDATE txn_counter SET last_id = last_id - asked + opened, is_full = opened < asked,
               counted_open = open_now + opened, counted_at = last_id - asked + opened
        RETURNING * INTO counter;
    END IF;
    first_txn_id := counter.last_id - opened + 1;
    -- A statement of its own: its snapshot is taken while the counter is locked, see txn.opened_snapshot.
    INSERT INTO txn (txn_id, state, type, user_name, host_name, agent_info, started_at, heartbeat_at, opened_snapshot,
                     may_begin_again)
    SELECT counter.last_id - opened + r.place, 'o', r.type, r.user_name, r.host_name, r.agent_info, instant, instant,
           pg_current_snapshot(), r.may_begin_again
      FROM unnest(txn_types, user_names, host_names, agent_infos, may_begin_again)
           WITH ORDINALITY AS r (type, user_name, host_name, agent_info, may_begin_again, place)
     WHERE r.place <= opened;
    IF cardinality(uses) > 0 THEN
        INSERT INTO min_history_write_id (txn_id, db, tbl, write_id)
        SELECT counter.last_id - opened + u.place, u.db, u.tbl, 0
          FROM unnest(uses, dbs, tbls) AS u (place, db, tbl)
         WHERE u.place <= opened;
    END IF;
    RETURN NEXT;
END
$$;
