-- Whether transaction ids of another metastore were passed over, so that its tables came here.
CREATE OR REPLACE FUNCTION has_imports() RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT 1 FROM imported_txn_range)
$$;
