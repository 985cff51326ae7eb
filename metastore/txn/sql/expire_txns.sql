-- Aborts up to `at_most` open transactions without a heartbeat for `timeout_ms`; those of type REPL_CREATED (1) have
-- `repl_timeout_ms` (transactions.md §1.9). Ones that are busy in this instant are passed over: they are alive. `now_ms` is
-- what the clock showed when it was found to be right (settle_clock): it may have been put forward since.
CREATE OR REPLACE FUNCTION expire_txns(
    timeout_ms bigint, repl_timeout_ms bigint, reason text, at_most integer, now_ms bigint DEFAULT NULL
)
RETURNS TABLE (aborted bigint[], freed_locks bigint[])
LANGUAGE plpgsql AS $$
DECLARE
    instant timestamptz := coalesce(to_timestamp(now_ms / 1000.0), clock_timestamp());
    expired bigint[];
BEGIN
    expired := ARRAY(
        SELECT t.txn_id FROM txn t
         WHERE t.state = 'o'
           AND t.heartbeat_at < instant - make_interval(
                   secs => CASE t.type WHEN 1 THEN repl_timeout_ms ELSE timeout_ms END / 1000.0)
         ORDER BY t.txn_id LIMIT at_most FOR NO KEY UPDATE SKIP LOCKED);
    RETURN QUERY SELECT a.aborted, a.freed_locks FROM abort_txns(expired, reason) a;
END
$$;
