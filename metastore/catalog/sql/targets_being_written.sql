-- Those of a table (0) and its partitions to which the transaction with this write id, not yet committed, has declared
-- a write.
CREATE OR REPLACE FUNCTION targets_being_written(in_table_id bigint, targets bigint[], in_write_id bigint)
RETURNS TABLE (target bigint)
LANGUAGE sql STABLE AS $$
    WITH written AS MATERIALIZED (
        SELECT c.partition
          FROM tbl t JOIN unresolved_write_id u ON u.db = t.database AND u.tbl = t.name AND u.write_id = in_write_id
          JOIN txn_component c ON c.txn_id = u.txn_id AND c.db = u.db AND c.tbl = u.tbl
         WHERE t.id = in_table_id AND c.operation <> 'c'
    )
    SELECT wanted.id FROM unnest(targets) AS wanted (id) LEFT JOIN partition p ON p.id = wanted.id
     WHERE EXISTS (SELECT 1 FROM written w WHERE w.partition IS NULL OR wanted.id = 0 OR w.partition = p.name);
$$;
