-- Who has opened these transactions, as far as they are known.
CREATE OR REPLACE FUNCTION txn_owners(in_ids bigint[])
RETURNS TABLE (txn_id bigint, user_name text)
LANGUAGE sql STABLE AS $$
    SELECT t.txn_id, t.user_name FROM txn t WHERE t.txn_id = ANY (in_ids);
$$;
