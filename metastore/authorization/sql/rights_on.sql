-- What a user may do with the server (all null), a catalog, a database or a table, by whatever it holds; ADMIN is
-- everything. SEE is that of who may see something in a database; CREATE says nothing of a table that is there.
-- `grantable` is what may be granted on.
CREATE OR REPLACE FUNCTION rights_on(
    in_user text, in_groups text[], in_catalog text, in_database text, in_table text
)
RETURNS TABLE (rights text[], grantable text[], owner text, is_there boolean)
LANGUAGE sql STABLE AS $$
    WITH acting AS MATERIALIZED (
        SELECT a.principal, a.principal_type FROM acting_as(in_user, in_groups) a
    ), named AS MATERIALIZED (
        SELECT t.id, t.owner, t.owner_type FROM tbl t WHERE t.database = in_database AND t.name = in_table
    ), home AS MATERIALIZED (
        SELECT d.owner, d.owner_type FROM database d WHERE d.name = in_database
    ), held AS (
        SELECT upper(p.privilege) AS privilege, p.grant_option
          FROM privilege p JOIN acting USING (principal, principal_type)
         WHERE ((p.object_type = 1 AND (p.catalog IS NULL OR p.catalog = in_catalog))
                OR (p.object_type = 2 AND p.database = in_database)
                OR (p.object_type = 3 AND p.table_id = (SELECT n.id FROM named n)))
           AND (upper(p.privilege) <> 'CREATE' OR NOT EXISTS (SELECT FROM named))
        UNION ALL
        SELECT 'ADMIN', true FROM acting a WHERE a.principal = 'admin' AND a.principal_type = 2
        UNION ALL
        SELECT 'ADMIN', true
          FROM (SELECT n.owner, n.owner_type FROM named n UNION ALL SELECT h.owner, h.owner_type FROM home h) o
          JOIN owning_as(in_user, in_groups) a
            ON a.principal = o.owner AND a.principal_type = coalesce(o.owner_type, 1)
        UNION ALL
        SELECT 'SEE', false
         WHERE in_table IS NULL AND in_database IS NOT NULL
           AND EXISTS (SELECT FROM visible_tables(in_user, in_groups, in_database))
    )
    SELECT coalesce(array_agg(DISTINCT h.privilege), '{}'),
           coalesce(array_agg(DISTINCT h.privilege) FILTER (WHERE h.grant_option), '{}'),
           CASE WHEN in_table IS NULL THEN (SELECT o.owner FROM home o) ELSE (SELECT n.owner FROM named n) END,
           EXISTS (SELECT FROM named) OR in_table IS NULL
      FROM held h;
$$;
