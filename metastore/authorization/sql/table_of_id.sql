-- The table with this id, if there is one.
CREATE OR REPLACE FUNCTION table_of_id(in_id bigint)
RETURNS TABLE (database text, name text)
LANGUAGE sql STABLE AS $$
    SELECT t.database, t.name FROM tbl t WHERE t.id = in_id;
$$;
