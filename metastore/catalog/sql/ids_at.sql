-- The ids of what of a table lies at a place, as a text of JSON, by which it is known when it has been dropped
-- (moved_places): of the table, with the names by their ids of those of its partitions that lie below where their names
-- say; or of the one partition. Null if that cannot be told.
CREATE OR REPLACE FUNCTION ids_at(in_db text, in_tbl text, place text) RETURNS text
LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN t.location = place THEN jsonb_build_object('table', t.id, 'partitions', (
            SELECT coalesce(jsonb_object_agg(p.id, p.name), '{}') FROM partition p
             WHERE p.table_id = t.id AND p.location = place || '/' || p.name))::text
        ELSE (
            SELECT jsonb_build_object('partition', min(p.id))::text FROM partition p
             WHERE p.table_id = t.id AND p.location = place
               AND left(lower(p.location), 600) COLLATE "C" = left(lower(place), 600) COLLATE "C"  -- its index
            HAVING count(*) = 1)
        END
      FROM tbl t
     WHERE t.database = in_db AND t.name = in_tbl
$$;
