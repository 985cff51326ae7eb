-- A compaction is not wanted, or not possible: it is history (transactions.md §4.3). The Cleaner refuses those that are
-- ready for cleaning where cleaning is switched off.
CREATE OR REPLACE FUNCTION mark_refused(compaction_id bigint, in_worker text, message text) RETURNS boolean
LANGUAGE sql AS $$
    WITH updated AS (
        UPDATE compaction
           SET state = 'c', last_worker = coalesce(worker, last_worker), worker = NULL, ended_at = clock_timestamp(),
               error_message = message, reason = message
         WHERE id = compaction_id
           AND CASE state WHEN 'i' THEN in_worker IS NULL  -- a worker that lost it has no say any more
                          WHEN 'w' THEN worker = coalesce(in_worker, worker)
                          WHEN 'r' THEN last_worker IS NOT DISTINCT FROM coalesce(in_worker, last_worker)
                          ELSE false END
        RETURNING 1
    )
    SELECT EXISTS (SELECT 1 FROM updated);
$$;
