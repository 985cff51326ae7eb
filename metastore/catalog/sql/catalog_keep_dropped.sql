-- Puts a table that is about to be deleted on record with its partitions and write ids, so that it can be brought back
-- for `window_ms`. Returns where its directories `places` go in the trash: `.trash` below the warehouse's root, or beside
-- a directory that is elsewhere, so that the way is a rename.
CREATE OR REPLACE FUNCTION catalog_keep_dropped(wanted_id bigint, window_ms bigint, root text, places text[])
RETURNS TABLE (location text, trash text)
LANGUAGE plpgsql AS $$
DECLARE
    kept bigint;
BEGIN
    INSERT INTO dropped_table (database, name, definition, last_write_id, invalid_write_ids, writers, purge_at)
    SELECT t.database, t.name, to_jsonb(t),
           (SELECT k.last_write_id FROM write_id_counter k WHERE k.db = t.database AND k.tbl = t.name),
           ARRAY(SELECT u.write_id FROM unresolved_write_id u WHERE u.db = t.database AND u.tbl = t.name ORDER BY 1),
           ARRAY(SELECT u.txn_id FROM unresolved_write_id u
                  WHERE u.db = t.database AND u.tbl = t.name AND NOT u.is_aborted ORDER BY 1),
           clock_timestamp() + make_interval(secs => window_ms / 1000.0)
      FROM tbl t WHERE t.id = wanted_id
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
