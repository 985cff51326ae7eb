-- Puts a compaction back into the queue whose worker could do nothing about what went wrong, such as the end of the
-- program that it gave the job to; after `max_attempts` workers it has failed (transactions.md §4.4). The state it is
-- in now; no row if it is not this worker's any more.
CREATE OR REPLACE FUNCTION retry_compaction(compaction_id bigint, in_worker text, message text, max_attempts integer)
RETURNS TABLE (state text)
LANGUAGE sql AS $$
    UPDATE compaction c
       SET state = CASE WHEN c.attempts < max_attempts THEN 'i' ELSE 'f' END,
           last_worker = c.worker, worker = NULL,
           started_at = CASE WHEN c.attempts >= max_attempts THEN c.started_at END,
           ended_at = CASE WHEN c.attempts >= max_attempts THEN clock_timestamp() END,
           txn_id = NULL, highest_write_id = NULL, job_id = NULL, progress = NULL, files_before = NULL,
           bytes_before = NULL, files_after = NULL, bytes_after = NULL, has_more = false,
           error_message = CASE WHEN c.attempts >= max_attempts THEN message END,
           reason = format('attempt %s of %s ended: %s', c.attempts, max_attempts, message)
     WHERE c.id = compaction_id AND c.state = 'w' AND c.worker = in_worker
    RETURNING c.state;
$$;
