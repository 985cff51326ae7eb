-- Whether no open transaction with these ids, the bounds included, is of another user.
CREATE OR REPLACE FUNCTION txn_range_is_of(in_user text, in_least bigint, in_most bigint)
RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT NOT EXISTS (
        SELECT FROM txn t
         WHERE t.txn_id BETWEEN in_least AND in_most AND t.state = 'o' AND t.user_name IS DISTINCT FROM in_user);
$$;
