-- The row of one database, the second most frequent question (wire.md §4.1).
CREATE OR REPLACE FUNCTION catalog_database(wanted_name text)
RETURNS SETOF database
LANGUAGE sql STABLE
AS $$
    SELECT * FROM database WHERE name = wanted_name
$$;
