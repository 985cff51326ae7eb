-- Whether anybody has the role admin.
CREATE OR REPLACE FUNCTION has_admin()
RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM role_grant WHERE role = 'admin' AND principal_type <> 2);
$$;
