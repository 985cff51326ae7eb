-- The tables of a database on which a user has a right of their own: as its owner, or by a grant on the table.
CREATE OR REPLACE FUNCTION visible_tables(in_user text, in_groups text[], in_database text)
RETURNS TABLE (name text)
LANGUAGE sql STABLE AS $$
    WITH acting AS MATERIALIZED (
        SELECT a.principal, a.principal_type FROM acting_as(in_user, in_groups) a
    )
    SELECT t.name FROM tbl t JOIN owning_as(in_user, in_groups) a
            ON a.principal = t.owner AND a.principal_type = coalesce(t.owner_type, 1)
     WHERE t.database = in_database
    UNION
    SELECT t.name FROM privilege p JOIN acting USING (principal, principal_type) JOIN tbl t ON t.id = p.table_id
     WHERE p.object_type = 3 AND t.database = in_database;
$$;
