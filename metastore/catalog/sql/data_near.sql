-- What the catalogue has in ranges of places, from the low to the high end of each: rows of tables, partitions and
-- databases; directories of dropped objects that are read, removed, moved to the trash or kept there; both ends of moves
-- that are not committed. It finds too much where places differ in the case of letters only, or in what is behind their
-- first 600; who asks looks again. What belongs to the table own_table is left out, and of this what it has itself, unless
-- own_partitions names partitions: then only these are left out. Without `wanted` all kinds are looked for. Rows without a
-- number are all known aliases: the place, its target as label, and whether the case of letters does not count there as id.
CREATE OR REPLACE FUNCTION data_near(
    numbers integer[], lows text[], highs text[], own_table bigint, own_partitions text[], wanted text[]
) RETURNS TABLE (number integer, kind text, id bigint, label text, location text)
LANGUAGE plpgsql STABLE SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    most CONSTANT bigint := 1000;  -- of a kind in a range: who asks wants to know whether there is any
BEGIN
    lows := ARRAY(SELECT left(lower(l), 600) FROM unnest(lows) WITH ORDINALITY AS u (l, n) ORDER BY n);
    highs := ARRAY(SELECT left(lower(h), 600) FROM unnest(highs) WITH ORDINALITY AS u (h, n) ORDER BY n);
    RETURN QUERY
    SELECT a.number, f.kind, f.id, f.label, f.location
      FROM unnest(numbers, lows, highs) AS a (number, low, high), LATERAL (
        (SELECT 'table' AS kind, t.id, t.database || '.' || t.name AS label, t.location FROM tbl t
          WHERE coalesce('table' = ANY (wanted), true)
            AND left(lower(t.location), 600) COLLATE "C" BETWEEN a.low AND a.high
            AND (t.id IS DISTINCT FROM own_table OR own_partitions IS NOT NULL) LIMIT most)
        UNION ALL
        (SELECT 'partition', p.table_id, p.name, p.location FROM partition p
          WHERE coalesce('partition' = ANY (wanted), true)
            AND left(lower(p.location), 600) COLLATE "C" BETWEEN a.low AND a.high
            AND (p.table_id IS DISTINCT FROM own_table OR p.name <> ALL (own_partitions)) LIMIT most)
        UNION ALL
        (SELECT 'database', NULL, d.name, d.location FROM database d
          WHERE coalesce('database' = ANY (wanted), true)
            AND left(lower(d.location), 600) COLLATE "C" BETWEEN a.low AND a.high LIMIT most)
        UNION ALL
        (SELECT 'database', NULL, d.name, d.managed_location FROM database d
          WHERE coalesce('database' = ANY (wanted), true)
            AND left(lower(d.managed_location), 600) COLLATE "C" BETWEEN a.low AND a.high
          LIMIT most)
        UNION ALL
        (SELECT CASE WHEN r.takes_back THEN 'renaming' WHEN r.trash IS NULL THEN 'removal' ELSE 'moving' END,
                r.id, r.owner, r.location
           FROM directory_removal r
          WHERE coalesce('removal' = ANY (wanted), true)
            AND left(lower(r.location), 600) COLLATE "C" BETWEEN a.low AND a.high LIMIT most)
        UNION ALL
        (SELECT CASE WHEN r.takes_back THEN 'renaming' ELSE 'moving' END, r.id, r.owner, r.trash FROM directory_removal r
          WHERE coalesce('removal' = ANY (wanted), true)
            AND left(lower(r.trash), 600) COLLATE "C" BETWEEN a.low AND a.high LIMIT most)
        UNION ALL
        (SELECT 'trash', k.id, k.database || '.' || k.name, w.trash
           FROM dropped_directory w JOIN dropped_table k ON k.id = w.dropped_id
          WHERE coalesce('trash' = ANY (wanted), true)
            AND left(lower(w.trash), 600) COLLATE "C" BETWEEN a.low AND a.high LIMIT most)
      ) AS f;
    RETURN QUERY SELECT NULL::integer, 'alias', x.ignores_case::integer::bigint, x.target, x.place FROM place_alias x;
    RETURN QUERY
    SELECT h.number, 'read', h.id, h.db || '.' || h.tbl, h.location
      FROM compaction_held_near(numbers, lows, highs) AS h
     WHERE coalesce('read' = ANY (wanted), true)
       AND NOT EXISTS (SELECT 1 FROM tbl t WHERE t.id = own_table AND t.database = h.db AND t.name = h.tbl);
END
$$;
