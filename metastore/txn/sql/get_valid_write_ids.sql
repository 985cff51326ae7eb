-- Which write ids of some tables a snapshot sees (transactions.md §2.2), one row per table in the order asked: the
-- high-water mark, the ids below it that are open or later, the aborted ones, those of them that are none to this
-- snapshot, and whether a valid one exists.
-- The snapshot is given by high_water_mark, open_ids and whether the high-water mark itself is aborted in it; which
-- others are is on record here. Or, when high_water_mark is null, it is the
-- present one as the transaction sees it that owns as_of_write_id of the first table; a single row without values if
-- nobody does. `known_versions` says which aborted ids the caller has: if they are the same still, they are null here.
--
-- The walk goes over open and later transactions only, never over the committed history, nor over the aborted ids that
-- the caller knows. All is of one instant.
-- Plans are made for the lists as they are: one made for any list compares 100,000 ids with each other one by one.
CREATE OR REPLACE FUNCTION get_valid_write_ids(
    dbs text[], tbls text[], high_water_mark bigint, open_ids bigint[], last_is_aborted boolean, as_of_write_id bigint,
    known_versions bigint[]
) RETURNS TABLE (
    db text, tbl text, highest bigint, not_ended bigint[], aborted_version bigint, aborted bigint[], hidden bigint[],
    has_valid boolean
)
LANGUAGE plpgsql STABLE SET enable_hashjoin = on SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    hwm bigint := high_water_mark;
    open_then bigint[] := open_ids;
    own_txn bigint;
    last_txn bigint;
    last_given bigint;
BEGIN
    IF hwm IS NULL THEN
        SELECT g.high_water_mark, g.open_ids, g.high_water_mark = ANY (g.aborted_ids)
          INTO hwm, open_then, last_is_aborted
          FROM get_open_txns('{2}', NULL) g;
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
    FOR i IN 1 .. cardinality(dbs) LOOP
        db := dbs[i];
        tbl := tbls[i];
        SELECT k.last_write_id, k.aborted_version INTO last_given, aborted_version
          FROM write_id_counter k WHERE k.db = dbs[i] AND k.tbl = tbls[i];
        aborted_version := coalesce(aborted_version, 0);
        SELECT w.write_id, w.txn_id INTO highest, last_txn FROM write_id w
         WHERE w.db = dbs[i] AND w.tbl = tbls[i] AND w.txn_id <= hwm ORDER BY w.write_id DESC LIMIT 1;
        highest := coalesce(highest, last_given, 0);
        SELECT coalesce(array_agg(s.write_id ORDER BY s.write_id), '{}') INTO not_ended
          -- The rows of the table, not the ids of the snapshot: of these there may be many with nothing to do here. A
          -- hashed subquery, not = ANY: that would compare every row with every id.
          FROM (SELECT w.write_id
                  FROM write_id w
                 WHERE w.db = dbs[i] AND w.tbl = tbls[i] AND w.write_id <= highest
                   AND w.txn_id BETWEEN open_then[1] AND open_then[cardinality(open_then)]
                   AND (w.txn_id IN (SELECT unnest(open_then))) IS TRUE
                UNION ALL
                -- A row may stand for a run of write ids (see purge_write_ids).
                SELECT generate_series(coalesce(w.first_write_id, w.write_id), w.write_id) FROM write_id w
                 WHERE w.db = dbs[i] AND w.tbl = tbls[i] AND w.txn_id > hwm AND w.write_id <= highest) AS s;
        aborted := CASE WHEN aborted_version IS DISTINCT FROM known_versions[i] THEN
            ARRAY(SELECT u.write_id FROM unresolved_write_id u
                   WHERE u.db = dbs[i] AND u.tbl = tbls[i] AND u.is_aborted ORDER BY u.write_id) END;
        -- What is aborted now and earlier than the snapshot was open or aborted then. A transaction's own snapshot ends
        -- with itself, and names it in neither list.
        hidden := ARRAY(
            SELECT u.write_id FROM unresolved_write_id u
             WHERE u.db = dbs[i] AND u.tbl = tbls[i] AND u.is_aborted AND u.txn_id >= hwm
               AND NOT (u.txn_id = hwm AND last_is_aborted)
            UNION
            SELECT u.write_id FROM unresolved_write_id u
             WHERE u.db = dbs[i] AND u.tbl = tbls[i] AND u.is_aborted AND u.write_id > highest
            UNION
            SELECT u.write_id FROM unnest(open_then) AS o (id) JOIN unresolved_write_id u ON u.txn_id = o.id
             WHERE u.db = dbs[i] AND u.tbl = tbls[i] AND u.is_aborted);
        has_valid := false;
        IF last_txn IS NOT NULL THEN
            -- Mostly the last one is valid; only if it is not, all are looked at.
            has_valid := NOT (last_txn = ANY (open_then)) AND NOT EXISTS (
                SELECT 1 FROM unresolved_write_id u
                 WHERE u.txn_id = last_txn AND u.db = dbs[i] AND u.tbl = tbls[i] AND u.is_aborted
                   AND (u.txn_id < hwm OR last_is_aborted)
            );
            IF NOT has_valid THEN
                has_valid := EXISTS (
                    SELECT 1 FROM write_id w
                     WHERE w.db = dbs[i] AND w.tbl = tbls[i] AND w.write_id <= highest AND w.txn_id <= hwm
                       AND (w.txn_id IN (SELECT unnest(open_then))) IS NOT TRUE
                       AND NOT EXISTS (SELECT 1 FROM unresolved_write_id u
                                        WHERE u.txn_id = w.txn_id AND u.db = w.db AND u.tbl = w.tbl AND u.is_aborted
                                          AND (u.txn_id < hwm OR last_is_aborted))
                );
            END IF;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;
