-- Removes all locks of transactions that end, held or waited for; returns their databases.
CREATE OR REPLACE FUNCTION release_locks(txn_ids bigint[]) RETURNS text[]
LANGUAGE sql AS $$
    WITH released AS (DELETE FROM lock_component WHERE txn_id = ANY (txn_ids) RETURNING db)
    SELECT coalesce(array_agg(DISTINCT db), '{}') FROM released;
$$;
