-- The roles that a user has, itself or through others, and whether it may grant them on.
CREATE OR REPLACE FUNCTION roles_held(in_user text, in_groups text[])
RETURNS TABLE (role text, grantable boolean)
LANGUAGE sql STABLE AS $$
    SELECT r.role, bool_or(r.grant_option)
      FROM role_grant r JOIN acting_as(in_user, in_groups) USING (principal, principal_type)
     GROUP BY r.role;
$$;
