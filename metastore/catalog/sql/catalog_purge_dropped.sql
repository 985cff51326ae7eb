-- Forgets dropped tables that can be brought back no longer, at most a batch; returns their directories in the trash. One
-- that is still on its way there waits for the next time. `now_ms` is what the clock shows, and has been found to be right.
CREATE OR REPLACE FUNCTION catalog_purge_dropped(at_most integer, now_ms bigint) RETURNS SETOF text
LANGUAGE plpgsql AS $$
DECLARE
    due bigint[];
    places text[];
BEGIN
    due := ARRAY(
        SELECT d.id FROM dropped_table d
         WHERE d.purge_at <= to_timestamp(now_ms / 1000.0)
           AND NOT EXISTS (SELECT 1 FROM dropped_directory w JOIN directory_removal r ON r.trash = w.trash
                            WHERE w.dropped_id = d.id)
         ORDER BY d.purge_at LIMIT at_most FOR UPDATE SKIP LOCKED);
    places := ARRAY(SELECT w.trash FROM dropped_directory w WHERE w.dropped_id = ANY (due));
    DELETE FROM dropped_table WHERE id = ANY (due);
    RETURN QUERY SELECT unnest(places);
END
$$;
