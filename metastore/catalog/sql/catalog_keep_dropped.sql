-- Puts a table that is about to be deleted on record with its partitions and write ids, so that it can be brought back
-- for `window_ms`. Returns where its directories `places` go in the trash: `.trash` below the warehouse's root, or beside
-- a directory that is elsewhere, so that the way is a rename.
--
-- Whoever is writing to it is aborted, but for the transaction `dropping` in which it is dropped: what has not committed now
-- does not come back, and a commit after this would tell of rows that are lost.
CREATE OR REPLACE FUNCTION catalog_keep_dropped(
    wanted_id bigint, window_ms bigint, root text, places text[], dropping bigint
)
RETURNS TABLE (location text, trash text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    kept bigint;
    this tbl;
    writers bigint[];
    last_id bigint;
BEGIN
    SELECT * INTO this FROM tbl t WHERE t.id = wanted_id;
    -- No write id is given out between the look at who has one and the drop.
    SELECT k.last_write_id INTO last_id FROM write_id_counter k WHERE k.db = this.database AND k.tbl = this.name FOR UPDATE;
    writers := ARRAY(SELECT u.txn_id FROM unresolved_write_id u
                      WHERE u.db = this.database AND u.tbl = this.name AND NOT u.is_aborted AND u.txn_id <> dropping
                      ORDER BY u.txn_id);
    IF writers <> '{}' THEN
        PERFORM abort_txns(writers, format('it was writing to %s.%s when that was dropped', this.database, this.name));
    END IF;
    INSERT INTO dropped_table (database, name, definition, last_write_id, write_ids, aborted_components, purge_at)
    SELECT this.database, this.name, to_jsonb(this), last_id,
           (SELECT jsonb_agg(to_jsonb(w)) FROM write_id w WHERE w.db = this.database AND w.tbl = this.name),
           (SELECT jsonb_agg(to_jsonb(c))
              FROM txn_component c JOIN unresolved_write_id u USING (txn_id, db, tbl)
             WHERE c.db = this.database AND c.tbl = this.name AND u.is_aborted),
           clock_timestamp() + make_interval(secs => window_ms / 1000.0)
    RETURNING id INTO kept;
    INSERT INTO dropped_partition (dropped_id, definition)
    SELECT kept, to_jsonb(p) FROM partition p WHERE p.table_id = wanted_id;
    RETURN QUERY
        INSERT INTO dropped_directory AS d (dropped_id, location, trash)
        SELECT kept, p.place,
               CASE WHEN starts_with(p.place, root || '/') THEN root ELSE regexp_replace(p.place, '/[^/]*$', '') END
               || '/.trash/' || kept || '-' || p.number
          FROM unnest(places) WITH ORDINALITY AS p (place, number)
        RETURNING d.location, d.trash;
END
$$;
