-- The directories in which those of tables are made: of all databases, with a place of their own for managed tables.
CREATE OR REPLACE FUNCTION table_homes() RETURNS SETOF text
LANGUAGE sql STABLE AS $$
    SELECT d.location FROM database d WHERE d.location IS NOT NULL
     UNION SELECT d.managed_location FROM database d WHERE d.managed_location IS NOT NULL
$$;
