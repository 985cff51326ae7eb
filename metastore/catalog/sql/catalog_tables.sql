-- The rows of tables by their names, with the number of each question that finds one; JSON as text, which a long one stays
-- until a thread reads it. get_table is most of what a metastore is asked (wire.md §4.1): it is one round trip, and one look
-- into one index for each table, and one into that of the constraints, which come along: a writer keeps to those that
-- were there behind its lock, without asking again.
CREATE OR REPLACE FUNCTION catalog_tables(wanted_databases text[], wanted_names text[])
RETURNS TABLE (
    number integer, id bigint, database text, name text, table_type text, owner text, owner_type smallint,
    created_s integer, location text, columns text, partition_keys text, parameters text, storage text, details text,
    constraints text
)
LANGUAGE sql STABLE AS $$
    SELECT w.number::integer, t.id, t.database, t.name, t.table_type, t.owner, t.owner_type, t.created_s, t.location,
           t.columns::text, t.partition_keys::text, t.parameters::text, t.storage::text, t.details::text,
           c.told::text
      FROM unnest(wanted_databases, wanted_names) WITH ORDINALITY AS w (database, name, number)
     CROSS JOIN LATERAL (SELECT * FROM tbl WHERE tbl.database = w.database AND tbl.name = w.name LIMIT 1) AS t
     CROSS JOIN LATERAL (
        SELECT json_agg(json_strip_nulls(json_build_object(
                   'kind', o.kind, 'name', o.name, 'columns', o.columns, 'enabled', o.enabled, 'validated', o.validated,
                   'rely', o.rely, 'expression', o.expression, 'parent_database', p.database, 'parent_table', p.name,
                   'parent_columns', o.parent_columns)) ORDER BY o.kind, o.name) AS told
          FROM table_constraint AS o LEFT JOIN tbl AS p ON p.id = o.parent_id WHERE o.table_id = t.id) AS c
$$;
