-- Which write ids of some tables a snapshot sees (transactions.md §2.2), one row per table in the order asked.
-- The snapshot is given by high_water_mark, open_ids and whether the high-water mark itself is aborted in it; which
-- others are is on record here. Or, when high_water_mark is null, it is the
-- present one: with `as_of_write_id` as the transaction sees it that owns this write id of the first table (a single
-- row without values if nobody does), else as nobody in particular.
--
-- The walk goes over open, aborted and later transactions only, never over the committed history.
-- Plans are made for the lists as they are: one made for any list compares 100,000 ids with each other one by one.
CREATE OR REPLACE FUNCTION get_valid_write_ids(
    dbs text[], tbls text[], high_water_mark bigint, open_ids bigint[], last_is_aborted boolean, as_of_write_id bigint
) RETURNS TABLE (db text, tbl text, highest bigint, invalid bigint[], aborted bigint[], min_open bigint)
LANGUAGE plpgsql SET enable_hashjoin = on SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    hwm bigint := high_water_mark;
    open_then bigint[] := open_ids;
    own_txn bigint;
    lowest bigint;
    is_mapped boolean;
BEGIN
    IF hwm IS NULL THEN
        SELECT g.high_water_mark, g.open_ids, g.high_water_mark = ANY (g.aborted_ids)
          INTO hwm, open_then, last_is_aborted
          FROM get_open_txns('{2}') g;
        IF as_of_write_id IS NOT NULL THEN
            SELECT w.txn_id INTO own_txn FROM write_id w
             WHERE w.db = dbs[1] AND w.tbl = tbls[1] AND w.write_id = as_of_write_id;
            IF NOT FOUND THEN
                RETURN NEXT;
                RETURN;
            END IF;
            hwm := least(hwm, own_txn);
            open_then := ARRAY(SELECT id FROM unnest(open_then) AS id WHERE id < own_txn);
            last_is_aborted := last_is_aborted AND hwm < own_txn;
        END IF;
    END IF;
    FOR i IN 1 .. cardinality(dbs) LOOP
        db := dbs[i];
        tbl := tbls[i];
        SELECT w.write_id INTO highest FROM write_id w
         WHERE w.db = dbs[i] AND w.tbl = tbls[i] AND w.txn_id <= hwm ORDER BY w.write_id DESC LIMIT 1;
        is_mapped := FOUND;
        IF NOT is_mapped THEN
            SELECT k.last_write_id INTO highest FROM write_id_counter k WHERE k.db = dbs[i] AND k.tbl = tbls[i];
            highest := coalesce(highest, 0);
        END IF;
        SELECT coalesce(array_agg(s.write_id ORDER BY s.write_id), '{}'),
               coalesce(array_agg(s.write_id ORDER BY s.write_id) FILTER (WHERE s.is_aborted), '{}'),
               min(s.write_id) FILTER (WHERE NOT s.is_aborted)
          INTO invalid, aborted, min_open
          -- The rows of the table, not the ids of the snapshot: of these there may be many with nothing to do here. A
          -- hashed subquery, not = ANY: that would compare every row with every id.
          FROM (SELECT w.write_id, false AS is_aborted
                  FROM write_id w
                 WHERE w.db = dbs[i] AND w.tbl = tbls[i] AND w.write_id <= highest
                   AND w.txn_id BETWEEN open_then[1] AND open_then[cardinality(open_then)]
                   AND (w.txn_id IN (SELECT unnest(open_then))) IS TRUE
                UNION ALL
                -- What is aborted now and earlier than the snapshot was open or aborted then. A transaction's own
                -- snapshot ends with itself, and names it in neither list.
                SELECT u.write_id, true FROM unresolved_write_id u
                 WHERE u.db = dbs[i] AND u.tbl = tbls[i] AND u.is_aborted
                   AND (u.txn_id < hwm OR u.txn_id = hwm AND last_is_aborted)
                   AND u.write_id <= highest AND NOT EXISTS (SELECT 1 FROM unnest(open_then) AS id WHERE id = u.txn_id)
                UNION ALL
                -- A row may stand for a run of write ids (see purge_write_ids).
                SELECT generate_series(coalesce(w.first_write_id, w.write_id), w.write_id), false FROM write_id w
                 WHERE w.db = dbs[i] AND w.tbl = tbls[i] AND w.txn_id > hwm AND w.write_id <= highest) AS s;
        lowest := invalid[1];
        -- Without any valid write everything from the lowest invalid one on is left out.
        IF lowest IS NOT NULL AND NOT (is_mapped AND (invalid[cardinality(invalid)] < highest OR EXISTS (
            SELECT 1 FROM write_id w
             WHERE w.db = dbs[i] AND w.tbl = tbls[i] AND w.write_id <= highest
               AND NOT EXISTS (SELECT 1 FROM unnest(invalid) AS id WHERE id = w.write_id)
        ))) THEN
            highest := lowest;
            aborted := CASE WHEN aborted[1] = lowest THEN ARRAY[lowest] ELSE '{}' END;
            invalid := ARRAY[lowest];
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;
