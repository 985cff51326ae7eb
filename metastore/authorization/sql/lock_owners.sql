-- Who has asked for these locks, as far as they are known.
CREATE OR REPLACE FUNCTION lock_owners(in_ids bigint[])
RETURNS TABLE (lock_id bigint, user_name text)
LANGUAGE sql STABLE AS $$
    SELECT DISTINCT l.lock_id, l.user_name FROM lock_component l WHERE l.lock_id = ANY (in_ids);
$$;
