-- Gives up a request: a lock outside of transactions, or one still waited for (transactions.md §3.6). Outcome: ok, also
-- for an unknown id, or held with the transaction that keeps it. Safe to repeat.
CREATE OR REPLACE FUNCTION unlock(given_up bigint) RETURNS TABLE (outcome text, holder bigint, freed_databases text[])
LANGUAGE plpgsql AS $$
BEGIN
    WITH released AS (
        DELETE FROM lock_component l WHERE l.lock_id = given_up AND (l.txn_id = 0 OR l.state = 'w') RETURNING l.db
    )
    SELECT coalesce(array_agg(DISTINCT r.db), '{}') INTO freed_databases FROM released r;
    SELECT l.txn_id INTO holder FROM lock_component l WHERE l.lock_id = given_up LIMIT 1;
    outcome := CASE WHEN holder IS NULL THEN 'ok' ELSE 'held' END;
    RETURN NEXT;
END
$$;
