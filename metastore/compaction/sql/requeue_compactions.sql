-- Takes compactions away from workers that are gone (transactions.md §4.4): their transaction is not open any more, or
-- none was named within `claim_timeout_ms`, or they work for that much longer than `worker_timeout_ms`, after which a
-- worker gives up by itself. So too those that were marked as compacted but whose transaction aborted. After
-- `max_attempts` workers, or if another one is queued by now, it has failed. What no worker ever had was submitted for
-- clean-up, and stays, as the drop came to nothing.
CREATE OR REPLACE FUNCTION requeue_compactions(
    worker_timeout_ms bigint, claim_timeout_ms bigint, max_attempts integer
) RETURNS TABLE (id bigint, state text)
LANGUAGE plpgsql AS $$
DECLARE
    lost compaction;
    instant timestamptz := clock_timestamp();
    why text;
BEGIN
    FOR lost IN
        SELECT c.* FROM compaction c
         WHERE c.type <> 'c' AND c.committed_at IS NULL AND c.state IN ('w', 'r')
           AND (c.txn_id IS NOT NULL
                    AND NOT EXISTS (SELECT 1 FROM txn t WHERE t.txn_id = c.txn_id AND t.state = 'o')
                OR c.state = 'w'
                    AND c.started_at < instant - make_interval(
                        secs => (claim_timeout_ms
                                 + CASE WHEN c.txn_id IS NULL THEN 0 ELSE worker_timeout_ms END) / 1000.0))
         ORDER BY c.id FOR UPDATE SKIP LOCKED
    LOOP
        why := CASE WHEN lost.state = 'r' THEN 'its transaction was aborted before the commit'
                    WHEN lost.txn_id IS NULL THEN 'its worker did not begin in time'
                    WHEN EXISTS (SELECT 1 FROM txn t WHERE t.txn_id = lost.txn_id AND t.state = 'o')
                    THEN 'its worker took too long'
                    ELSE 'its worker disappeared' END;
        IF lost.attempts = 0 THEN
            UPDATE compaction c
               SET state = 'c', ended_at = clock_timestamp(),
                   error_message = 'its transaction was aborted: nothing is cleaned',
                   reason = 'its transaction was aborted: nothing is cleaned'
             WHERE c.id = lost.id
            RETURNING c.id, c.state INTO requeue_compactions.id, requeue_compactions.state;
        ELSIF lost.attempts >= max_attempts OR EXISTS (
            SELECT 1 FROM compaction c
             WHERE c.db = lost.db AND c.tbl = lost.tbl AND c.partition IS NOT DISTINCT FROM lost.partition
               AND c.state IN ('i', 'w') AND c.id <> lost.id)
        THEN
            UPDATE compaction c
               SET state = 'f', last_worker = coalesce(c.worker, c.last_worker), worker = NULL,
                   ended_at = clock_timestamp(), error_message = format('%s (attempt %s)', why, lost.attempts),
                   reason = format('%s (attempt %s)', why, lost.attempts)
             WHERE c.id = lost.id
            RETURNING c.id, c.state INTO requeue_compactions.id, requeue_compactions.state;
        ELSE
            UPDATE compaction c
               SET state = 'i', last_worker = coalesce(c.worker, c.last_worker), worker = NULL, started_at = NULL,
                   txn_id = NULL, highest_write_id = NULL, job_id = NULL, progress = NULL, files_before = NULL,
                   bytes_before = NULL, files_after = NULL, bytes_after = NULL, has_more = false,
                   reason = format('waits for a worker: %s (attempt %s of %s)', why, lost.attempts, max_attempts)
             WHERE c.id = lost.id
            RETURNING c.id, c.state INTO requeue_compactions.id, requeue_compactions.state;
        END IF;
        RETURN NEXT;
    END LOOP;
END
$$;
