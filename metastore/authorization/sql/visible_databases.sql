-- The databases in which a user has any right: as their owner, by a grant on them, on their catalog, or on a table.
CREATE OR REPLACE FUNCTION visible_databases(in_user text, in_groups text[])
RETURNS TABLE (name text)
LANGUAGE sql STABLE AS $$
    WITH acting AS MATERIALIZED (
        SELECT a.principal, a.principal_type FROM acting_as(in_user, in_groups) a
    ), held AS MATERIALIZED (
        SELECT p.object_type, p.catalog, p.database, p.table_id
          FROM privilege p JOIN acting USING (principal, principal_type)
    )
    SELECT d.name FROM database d JOIN owning_as(in_user, in_groups) a
            ON a.principal = d.owner AND a.principal_type = coalesce(d.owner_type, 1)
    UNION SELECT h.database FROM held h WHERE h.object_type = 2
    UNION SELECT d.name FROM held h JOIN database d ON starts_with(d.name, '@' || h.catalog || '#')
    UNION SELECT t.database FROM tbl t JOIN owning_as(in_user, in_groups) a
            ON a.principal = t.owner AND a.principal_type = coalesce(t.owner_type, 1)
    UNION SELECT t.database FROM held h JOIN tbl t ON t.id = h.table_id WHERE h.object_type = 3;
$$;
