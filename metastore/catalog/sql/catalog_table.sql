-- The row of one table: get_table is most of what a metastore is asked (wire.md §4.1), so it is one round trip
-- and one look into one index.
CREATE OR REPLACE FUNCTION catalog_table(wanted_database text, wanted_name text)
RETURNS SETOF tbl
LANGUAGE sql STABLE
AS $$
    SELECT * FROM tbl WHERE database = wanted_database AND name = wanted_name
$$;
