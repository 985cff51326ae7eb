-- Keeps in mind which statistics of a table or partition miss a committed write up to `last_write_id` (null: any), for
-- the record of these writes is about to go. Called in the transaction that removes it, before.
CREATE OR REPLACE FUNCTION outdate_statistics(in_db text, in_tbl text, in_partition text, last_write_id bigint)
RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    in_table_id bigint := (SELECT t.id FROM tbl t WHERE t.database = in_db AND t.name = in_tbl);
    touched bigint[];
BEGIN
    -- A table that is dropped, or claims nothing, has nothing to lose.
    touched := ARRAY(SELECT 0 FROM tbl t WHERE t.id = in_table_id
                      UNION ALL
                     SELECT p.id FROM partition p
                      WHERE p.table_id = in_table_id AND p.parameters ? 'COLUMN_STATS_ACCURATE'
                        AND (in_partition IS NULL OR p.name = in_partition));
    INSERT INTO statistics_basis AS b (table_id, partition_id, write_id, high_water_mark, open_ids, is_outdated)
    SELECT in_table_id, nullif(id, 0), 0, 0, '{}', EXISTS (
               SELECT 1 FROM completed_component c
                WHERE c.db = in_db AND c.tbl = in_tbl AND c.partition IS NOT DISTINCT FROM in_partition
                  AND (last_write_id IS NULL OR c.write_id <= last_write_id))
      FROM unnest(touched) AS id
    ON CONFLICT (table_id, coalesce(partition_id, 0)) DO UPDATE SET is_outdated = b.is_outdated OR EXISTS (
               SELECT 1 FROM completed_component c
                WHERE c.db = in_db AND c.tbl = in_tbl AND c.partition IS NOT DISTINCT FROM in_partition
                  AND (last_write_id IS NULL OR c.write_id <= last_write_id)
                  AND NOT includes_write(b.write_id, b.high_water_mark, b.open_ids, c.write_id));
END
$$;
