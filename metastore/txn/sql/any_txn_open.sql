-- Whether any transaction but `own`, if there is such, is open.
CREATE OR REPLACE FUNCTION any_txn_open(own bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT 1 FROM txn t WHERE t.state = 'o' AND t.txn_id <> own)
$$;
