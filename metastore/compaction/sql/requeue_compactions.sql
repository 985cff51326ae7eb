-- Takes compactions away from workers that are gone (transactions.md §4.4): their transaction is not open any more, or
-- none was named within `claim_timeout_ms`, or they work for longer than `worker_timeout_ms`. So too those that were
-- marked as compacted but whose transaction aborted. After `max_attempts` workers, or if another one is queued
-- by now, it has failed. What no worker ever had was submitted for clean-up, and stays, as the drop came to nothing.
CREATE OR REPLACE FUNCTION requeue_compactions(
    worker_timeout_ms bigint, claim_timeout_ms bigint, max_attempts integer
) RETURNS TABLE (id bigint, state text)
LANGUAGE plpgsql AS $$
DECLARE
    lost compaction;
    instant timestamptz := clock_timestamp();
BEGIN
    FOR lost IN
        SELECT c.* FROM compaction c
         WHERE c.type <> 'c' AND c.committed_at IS NULL AND c.state IN ('w', 'r')
           AND (c.txn_id IS NOT NULL
                    AND NOT EXISTS (SELECT 1 FROM txn t WHERE t.txn_id = c.txn_id AND t.state = 'o')
                OR c.state = 'w'
                    AND c.started_at < instant - make_interval(
                        secs => CASE WHEN c.txn_id IS NULL THEN claim_timeout_ms ELSE worker_timeout_ms END / 1000.0))
         ORDER BY c.id FOR UPDATE SKIP LOCKED
    LOOP
        IF lost.attempts = 0 THEN
            UPDATE compaction c
               SET state = 'c', ended_at = clock_timestamp(), error_message = 'its transaction was aborted: nothing is cleaned'
             WHERE c.id = lost.id
            RETURNING c.id, c.state INTO requeue_compactions.id, requeue_compactions.state;
        ELSIF lost.attempts >= max_attempts OR EXISTS (
            SELECT 1 FROM compaction c
             WHERE c.db = lost.db AND c.tbl = lost.tbl AND c.partition IS NOT DISTINCT FROM lost.partition
               AND c.state IN ('i', 'w') AND c.id <> lost.id)
        THEN
            UPDATE compaction c
               SET state = 'f', worker = NULL, ended_at = clock_timestamp(),
                   error_message = format('its worker disappeared (attempt %s)', lost.attempts)
             WHERE c.id = lost.id
            RETURNING c.id, c.state INTO requeue_compactions.id, requeue_compactions.state;
        ELSE
            UPDATE compaction c
               SET state = 'i', worker = NULL, started_at = NULL, txn_id = NULL, highest_write_id = NULL, job_id = NULL
             WHERE c.id = lost.id
            RETURNING c.id, c.state INTO requeue_compactions.id, requeue_compactions.state;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;
