-- The row of one database, the second most frequent question (metastore-wire.md §4).
CREATE OR REPLACE FUNCTION catalog_database(wanted_name text)
RETURNS SETOF database
LANGUAGE sql STABLE
AS $$
    SELECT * FROM database WHERE name = wanted_name
$$;
