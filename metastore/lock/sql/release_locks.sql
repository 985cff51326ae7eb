-- Removes all locks of transactions that end, held or waited for; returns the ids of the requests.
CREATE OR REPLACE FUNCTION release_locks(txn_ids bigint[]) RETURNS bigint[]
LANGUAGE plpgsql AS $$
DECLARE
    freed bigint[];
    waited bigint[];
BEGIN
    WITH released AS (DELETE FROM lock_component WHERE txn_id = ANY (txn_ids) RETURNING lock_id, state)
    SELECT array_agg(DISTINCT lock_id), array_agg(DISTINCT lock_id) FILTER (WHERE state = 'w')
      INTO freed, waited FROM released;
    IF freed IS NULL THEN
        RETURN '{}';
    END IF;
    PERFORM tell_freed(freed, waited);
    RETURN freed;
END
$$;
