-- A compaction failed: it is history (transactions.md §4.3). One whose transaction has committed has not failed; false
-- for it, and if it is not this worker's (any worker's, if null) any more.
CREATE OR REPLACE FUNCTION mark_failed(compaction_id bigint, in_worker text, message text) RETURNS boolean
LANGUAGE sql AS $$
    WITH updated AS (
        UPDATE compaction
           SET state = 'f', last_worker = coalesce(worker, last_worker), worker = NULL, ended_at = clock_timestamp(),
               error_message = message, reason = message
         WHERE id = compaction_id AND committed_at IS NULL
           AND CASE state WHEN 'i' THEN in_worker IS NULL  -- a worker that lost it has no say any more
                          WHEN 'w' THEN worker = coalesce(in_worker, worker)
                          WHEN 'r' THEN last_worker IS NOT DISTINCT FROM coalesce(in_worker, last_worker)
                          ELSE false END
        RETURNING 1
    )
    SELECT EXISTS (SELECT 1 FROM updated);
$$;
