-- Of an ACID table (0) and its partitions, those of the `targets` whose statistics describe exactly what a reader's
-- snapshot shows; `reader_own` is the reader's own write id, if it has one. Statistics include all writes up to their
-- high-water mark but the open ones, and that of their own writer; none yet are those of the empty table.
--
-- Whether the data changed since is asked of the record of committed writes, not of the reader's list: a write id
-- is of the whole table, so a newer one says nothing about one partition. Of two writes to the same data the record
-- may keep the later one alone, so what was concurrent to the writer of the statistics must not be visible at all.
CREATE OR REPLACE FUNCTION compliant_statistics(
    in_table_id bigint, targets bigint[], reader_mark bigint, reader_open bigint[], reader_aborted bigint[],
    reader_own bigint
) RETURNS TABLE (target bigint, write_id bigint)
LANGUAGE sql STABLE AS $$
    WITH written AS MATERIALIZED (
        SELECT c.partition, c.write_id FROM tbl t JOIN completed_component c ON c.db = t.database AND c.tbl = t.name
         WHERE t.id = in_table_id
    ), hidden AS MATERIALIZED (
        SELECT id FROM unnest(reader_open || reader_aborted) AS id
    ), basis AS (
        SELECT wanted.id AS target, p.name, coalesce(b.write_id, 0) AS write_id,
               coalesce(b.high_water_mark, 0) AS mark, coalesce(b.open_ids, '{}') AS open_ids
          FROM unnest(targets) AS wanted (id)
          LEFT JOIN statistics_basis b ON b.table_id = in_table_id AND coalesce(b.partition_id, 0) = wanted.id
          LEFT JOIN partition p ON p.id = wanted.id
         WHERE b.is_outdated IS NOT TRUE
    )
    SELECT b.target, b.write_id
      FROM basis b
     WHERE b.mark <= greatest(reader_mark, reader_own)
       AND (b.write_id = reader_own OR b.write_id <= reader_mark AND b.write_id NOT IN (SELECT h.id FROM hidden h))
       -- What they include is visible, and what was concurrent to their writer is not.
       AND NOT EXISTS (SELECT 1 FROM unnest(reader_open) AS o (id)
                        WHERE o.id <= b.mark AND o.id <> ALL (b.open_ids) AND o.id <> b.write_id)
       AND NOT EXISTS (SELECT 1 FROM unnest(b.open_ids) AS o (id)
                        WHERE o.id <= reader_mark AND o.id NOT IN (SELECT h.id FROM hidden h))
       -- Nothing else was written since.
       AND NOT EXISTS (SELECT 1 FROM written w
                        WHERE w.partition = b.name
                          AND NOT includes_write(b.write_id, b.mark, b.open_ids, w.write_id))
       AND NOT EXISTS (SELECT 1 FROM written w
                        WHERE (w.partition IS NULL OR b.target = 0)
                          AND NOT includes_write(b.write_id, b.mark, b.open_ids, w.write_id));
$$;
