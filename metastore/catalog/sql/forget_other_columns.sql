-- Deletes the statistics that partitions have of columns which get lost, or another type, when their table's columns
-- become theirs too. Returns whose they were.
CREATE OR REPLACE FUNCTION forget_other_columns(in_table_id bigint, old_columns jsonb, new_columns jsonb)
RETURNS TABLE (partition_id bigint, column_name text)
LANGUAGE sql AS $$
    DELETE FROM column_statistics s USING partition p
     WHERE p.table_id = in_table_id AND s.partition_id = p.id
       AND NOT EXISTS (
           SELECT 1 FROM jsonb_to_recordset(coalesce(p.columns, old_columns)) AS o (name text, type text)
             JOIN jsonb_to_recordset(new_columns) AS n (name text, type text)
               ON n.name = o.name AND lower(n.type) = lower(o.type)
            WHERE o.name = s.column_name)
    RETURNING s.partition_id, s.column_name;
$$;
