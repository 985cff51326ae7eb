-- Adds partitions of one table in one statement; returns the names of those that were not there. `rows` is a list of
-- objects with the columns of the table partition.
CREATE OR REPLACE FUNCTION catalog_add_partitions(owner_id bigint, rows json) RETURNS SETOF text
LANGUAGE sql AS $$
    INSERT INTO partition (table_id, name, values, location, created_s, columns, parameters, storage, details)
    SELECT owner_id, r.name, r.values, r.location, r.created_s, r.columns, r.parameters, r.storage, r.details
      FROM json_to_recordset(rows) AS r (name text, values text[], location text, created_s integer, columns jsonb,
                                         parameters jsonb, storage jsonb, details jsonb)
     ORDER BY r.name COLLATE "C" -- so that two additions of the same partitions wait for each other, no more
        ON CONFLICT DO NOTHING
    RETURNING name
$$;
