-- A user, its groups and `public`, and the roles that one of them has, itself or through other roles. Nobody is nothing.
CREATE OR REPLACE FUNCTION acting_as(in_user text, in_groups text[])
RETURNS TABLE (principal text, principal_type smallint)
LANGUAGE sql STABLE AS $$
    WITH RECURSIVE acting(principal, principal_type) AS (
        (SELECT in_user COLLATE "C", 1::smallint WHERE in_user IS NOT NULL
         UNION SELECT 'public' COLLATE "C", 2::smallint WHERE in_user IS NOT NULL
         UNION SELECT g COLLATE "C", 3::smallint FROM unnest(in_groups) AS g)
        UNION
        SELECT r.role, 2::smallint FROM role_grant r JOIN acting a USING (principal, principal_type)
    )
    SELECT a.principal, a.principal_type FROM acting a;
$$;
