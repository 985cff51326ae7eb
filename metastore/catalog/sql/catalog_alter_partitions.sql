-- Replaces the definitions of partitions of one table, found by name, in one statement; returns how many there were.
-- `rows` is as for catalog_add_partitions.
CREATE OR REPLACE FUNCTION catalog_alter_partitions(owner_id bigint, rows json) RETURNS bigint
LANGUAGE sql AS $$
    WITH altered AS (
        UPDATE partition p
           SET location = r.location, created_s = r.created_s, columns = r.columns, parameters = r.parameters,
               storage = r.storage, details = r.details
          FROM json_to_recordset(rows) AS r (name text, location text, created_s integer, columns jsonb,
                                             parameters jsonb, storage jsonb, details jsonb)
         WHERE p.table_id = owner_id AND p.name = r.name
        RETURNING p.id
    )
    SELECT count(*) FROM altered
$$;
