-- Gives up requests, for many callers at once: locks outside of transactions, or ones still waited for (transactions.md
-- §3.6). One row for each that had to stay, with the transaction that holds it, and one for each that went, with no
-- holder; none for unknown ids. Safe to repeat.
CREATE OR REPLACE FUNCTION unlock_locks(given_up bigint[]) RETURNS TABLE (lock_id bigint, holder bigint)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    freed bigint[];
    waited bigint[];
BEGIN
    WITH released AS (
        DELETE FROM lock_component l WHERE l.lock_id = ANY (given_up) AND (l.txn_id = 0 OR l.state = 'w')
        RETURNING l.lock_id, l.state
    )
    SELECT array_agg(DISTINCT r.lock_id), array_agg(DISTINCT r.lock_id) FILTER (WHERE r.state = 'w')
      INTO freed, waited FROM released r;
    IF freed IS NOT NULL THEN
        PERFORM tell_freed(freed, waited);
    END IF;
    RETURN QUERY
        SELECT id, NULL::bigint FROM unnest(freed) AS id
        UNION ALL
        SELECT DISTINCT l.lock_id, l.txn_id FROM lock_component l WHERE l.lock_id = ANY (given_up);
END
$$;
