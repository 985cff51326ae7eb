-- Stores a figure of a table or partition (transactions.md §4.12). Safe to repeat.
CREATE OR REPLACE FUNCTION update_compaction_metric(
    in_db text, in_tbl text, in_partition text, in_type integer, in_value integer
) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO compaction_metric AS m (db, tbl, partition, type, value, version)
    VALUES (in_db, in_tbl, in_partition, in_type, in_value, 1)
    ON CONFLICT (db, tbl, partition, type) DO UPDATE SET value = in_value, version = m.version + 1;
$$;
