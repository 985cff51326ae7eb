-- The locations of all partitions of a table.
CREATE OR REPLACE FUNCTION partition_locations(in_db text, in_tbl text) RETURNS SETOF text
LANGUAGE sql STABLE AS $$
    SELECT p.location FROM tbl t JOIN partition p ON p.table_id = t.id
     WHERE t.database = in_db AND t.name = in_tbl AND p.location IS NOT NULL
$$;
