-- Removes locks outside of transactions that nobody has heartbeated for `timeout_ms` (transactions.md §1.9). Locks of a
-- transaction live as long as it does.
CREATE OR REPLACE FUNCTION expire_locks(timeout_ms bigint) RETURNS TABLE (expired bigint, freed_databases text[])
LANGUAGE sql AS $$
    WITH released AS (
        DELETE FROM lock_component
         WHERE txn_id = 0 AND heartbeat_at < clock_timestamp() - make_interval(secs => timeout_ms / 1000.0)
        RETURNING lock_id, db
    )
    SELECT count(DISTINCT lock_id), coalesce(array_agg(DISTINCT db), '{}') FROM released;
$$;
