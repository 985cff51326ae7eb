-- Whether any transaction is open.
CREATE OR REPLACE FUNCTION any_txn_open() RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT 1 FROM txn t WHERE t.state = 'o')
$$;
