-- As whom a user owns things. What is everybody's, as Hive has it of the database `default`, is nobody's own.
CREATE OR REPLACE FUNCTION owning_as(in_user text, in_groups text[])
RETURNS TABLE (principal text, principal_type smallint)
LANGUAGE sql STABLE AS $$
    SELECT a.principal, a.principal_type FROM acting_as(in_user, in_groups) a
     WHERE (a.principal, a.principal_type) <> ('public', 2);
$$;
