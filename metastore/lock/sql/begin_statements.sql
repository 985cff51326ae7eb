-- Begins statements, for many callers at once: opens a transaction for each, asks for its locks, takes the snapshot and
-- gives out write ids, in this order and in one database transaction (transactions.md §3.11). Arrays up to
-- `may_begin_again` have an entry for each statement; `uses`, `used_dbs` and `used_tbls` are those of open_txns, `requests`
-- to `dynamic` those of request_locks; `writers` says which statement each table that gets a write id belongs to;
-- `seen_dbs` to `known_versions` are those of current_write_ids. Rows, by `kind`:
--   opened     the first transaction id, and how many were opened (see open_txns)
--   lock       of each statement that was opened, in their order, if any has components: what request_locks says. One
--              without is acquired
--   outdated   `ids` are the statements that may begin again, and what they are to change was changed after they were
--              opened and before they had their locks; no such row if there are none
--   snapshot   of all of them: as get_open_txns, to whom `known_aborted` is known; `outcome` is the version of aborted ones
--   table      as current_write_ids, of the same instant, and the id of the table that has the name
--   written    of each entry of `writers` whose locks were acquired: its write id; none if that would have to wait
--   named      of such entries, the id of the table that has the name: by its counter it keeps that until the end of this call
--
-- Snapshot and write ids are of one statement behind the locks, so a transaction sees whatever had committed when it got
-- them. All of them see the same: nobody has opened one since, as the counter is locked, and those of this call have
-- written nothing. Whose locks wait has the snapshot from before, as if it had asked for it by itself.
-- Not to be repeated where the answer was lost: what is locked then stays so until it times out.
CREATE OR REPLACE FUNCTION begin_statements(
    txn_types smallint[], user_names text[], host_names text[], agent_infos text[], may_begin_again boolean[],
    uses integer[], used_dbs text[], used_tbls text[], max_open bigint,
    requests integer[], numbers integer[], types text[], dbs text[], tbls text[], partitions text[], operations text[],
    dynamic boolean[], writers integer[], written_dbs text[], written_tbls text[], seen_dbs text[], seen_tbls text[],
    known_versions bigint[], known_aborted text
) RETURNS TABLE (
    kind text, place bigint, outcome text, number bigint, other bigint, ids bigint[], more_ids bigint[],
    has_valid boolean, table_id bigint
)
LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    durability CONSTANT text := current_setting('synchronous_commit');
    before CONSTANT text := pg_current_snapshot()::text;
    is_flushed boolean;  -- whether any part of it has to be
    reset text;
    total CONSTANT integer := cardinality(txn_types);
    first_id bigint;
    opened integer;
    components integer := cardinality(types);
    opened_snapshot pg_snapshot;
    waiting integer[] := '{}';
    found record;
BEGIN
    SELECT o.first_txn_id, o.opened INTO first_id, opened
      FROM open_txns(array_fill(1, ARRAY[total]), txn_types, user_names, host_names, agent_infos, may_begin_again, uses,
                     used_dbs, used_tbls, max_open) AS o;
    kind := 'opened';
    number := first_id;
    other := opened;
    RETURN NEXT;
    IF opened = 0 THEN
        RETURN;
    END IF;
    is_flushed := current_setting('synchronous_commit') <> 'off';
    IF opened < total THEN
        components := (SELECT count(*) FROM unnest(requests) AS r WHERE r <= opened);
    END IF;
    IF components > 0 THEN
        reset := set_config('synchronous_commit', durability, true);
        FOR found IN
            SELECT l.*, l.ordinality AS place
              FROM request_locks(ARRAY(SELECT generate_series(first_id, first_id + opened - 1)), user_names[:opened],
                                 host_names[:opened], agent_infos[:opened], array_fill(true, ARRAY[opened]),
                                 array_fill(false, ARRAY[opened]), requests[:components], numbers[:components],
                                 types[:components], dbs[:components], tbls[:components], partitions[:components],
                                 operations[:components], dynamic[:components], true) WITH ORDINALITY AS l
        LOOP
            kind := 'lock';
            place := found.place;
            outcome := found.outcome;
            number := found.lock_id;
            other := found.blocker_lock;
            IF outcome <> 'acquired' THEN
                waiting := waiting || found.place::integer;
            END IF;
            RETURN NEXT;
        END LOOP;
        is_flushed := is_flushed OR current_setting('synchronous_commit') <> 'off';
        -- Most often nobody has ended since.
        IF before <> pg_current_snapshot()::text AND operations && '{u,d}' AND true = ANY (may_begin_again) THEN
            SELECT t.opened_snapshot INTO opened_snapshot FROM txn t WHERE t.txn_id = first_id;  -- that of all
            kind := 'outdated';
            ids := ARRAY(
                SELECT requests[c] FROM generate_subscripts(operations, 1) AS c
                 WHERE c <= components AND operations[c] IN ('u', 'd') AND may_begin_again[requests[c]]
                   AND requests[c] <> ALL (waiting)
                   AND EXISTS (SELECT 1
                                 FROM find_write_conflict(dbs[c], tbls[c],
                                                          CASE WHEN NOT dynamic[c] THEN nullif(partitions[c], '') END,
                                                          0, opened_snapshot)));
            IF ids <> '{}' THEN
                RETURN NEXT;
            END IF;
        END IF;
    END IF;
    RETURN QUERY
        SELECT 'snapshot', NULL::bigint, s.aborted_version, s.high_water_mark, s.min_open, s.open_ids, s.aborted_ids, NULL::boolean,
               NULL::bigint
          FROM get_open_txns('{2}', known_aborted) AS s
        UNION ALL
        SELECT 'table', w.aborted_version, NULL, w.last_write_id, w.place, w.open_ids, w.aborted_ids, w.has_valid,
               (SELECT t.id FROM tbl t WHERE t.database = seen_dbs[w.place] AND t.name = seen_tbls[w.place])
          FROM current_write_ids(seen_dbs, seen_tbls, known_versions) AS w
         WHERE cardinality(seen_dbs) > 0;
    IF cardinality(writers) > 0 THEN
        reset := set_config('synchronous_commit', durability, true);
        reset := set_config('lock_timeout', '20ms', true);
        BEGIN
            RETURN QUERY
                SELECT 'written', a.request::bigint, a.outcome, a.write_id, NULL::bigint, NULL::bigint[], NULL::bigint[],
                       NULL::boolean, NULL::bigint
                  FROM (SELECT array_agg(w.number::integer) AS numbers, array_agg(w.db) AS dbs, array_agg(w.tbl) AS tbls,
                               array_agg(first_id + w.writer - 1) AS txn_ids
                          FROM unnest(writers, written_dbs, written_tbls) WITH ORDINALITY AS w (writer, db, tbl, number)
                         WHERE w.writer <= opened AND w.writer <> ALL (waiting)) AS asked
                 CROSS JOIN LATERAL allocate_write_ids(asked.numbers, asked.dbs, asked.tbls, asked.txn_ids, true) AS a
                 WHERE asked.txn_ids IS NOT NULL;
            RETURN QUERY
                SELECT 'named', w.number, NULL, NULL::bigint, NULL::bigint, NULL::bigint[], NULL::bigint[], NULL::boolean, t.id
                  FROM unnest(writers, written_dbs, written_tbls) WITH ORDINALITY AS w (writer, db, tbl, number)
                  JOIN tbl t ON t.database = w.db AND t.name = w.tbl
                 WHERE w.writer <= opened AND w.writer <> ALL (waiting);
        EXCEPTION WHEN lock_not_available THEN
            -- Somebody drops a table, and everybody waits for the counter of transactions that is locked here.
            reset := set_config('synchronous_commit', 'off', true);
        END;
        is_flushed := is_flushed OR current_setting('synchronous_commit') <> 'off';
    END IF;
    reset := set_config('synchronous_commit', CASE WHEN is_flushed THEN durability ELSE 'off' END, true);
END
$$;
