-- A compaction failed: it is history (transactions.md §4.3). One whose transaction has committed has not failed; false
-- for it, and if it is not this worker's (any worker's, if null) any more.
CREATE OR REPLACE FUNCTION mark_failed(compaction_id bigint, in_worker text, message text) RETURNS boolean
LANGUAGE sql AS $$
    WITH updated AS (
        UPDATE compaction SET state = 'f', worker = NULL, ended_at = clock_timestamp(), error_message = message
         WHERE id = compaction_id AND committed_at IS NULL
           AND (state IN ('i', 'r') OR state = 'w' AND worker = coalesce(in_worker, worker))
        RETURNING 1
    )
    SELECT EXISTS (SELECT 1 FROM updated);
$$;
