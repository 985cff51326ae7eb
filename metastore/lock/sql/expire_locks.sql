-- Removes up to `at_most` components of locks outside of transactions that nobody has heartbeated for `timeout_ms`
-- (transactions.md §1.9); a lock loses all of its components. Ones that are busy in this instant are passed over: they
-- are alive. Locks of a transaction live as long as it does. Returns the ids of the requests. `now_ms` is as of expire_txns.
CREATE OR REPLACE FUNCTION expire_locks(timeout_ms bigint, at_most integer, now_ms bigint DEFAULT NULL)
RETURNS TABLE (expired bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    instant timestamptz := coalesce(to_timestamp(now_ms / 1000.0), clock_timestamp());
BEGIN
    WITH silent AS MATERIALIZED (
        SELECT l.lock_id FROM lock_component l
         WHERE l.txn_id = 0 AND l.heartbeat_at < instant - make_interval(secs => timeout_ms / 1000.0)
         ORDER BY l.lock_id, l.component LIMIT at_most FOR NO KEY UPDATE SKIP LOCKED
    ), released AS (
        DELETE FROM lock_component l USING (SELECT DISTINCT s.lock_id FROM silent s) s WHERE l.lock_id = s.lock_id
        RETURNING l.lock_id
    )
    SELECT coalesce(array_agg(DISTINCT r.lock_id), '{}') INTO expired FROM released r;
    PERFORM tell_freed(expired, NULL);
    RETURN NEXT;
END
$$;
