-- A compaction is not wanted, or not possible: it is history (transactions.md §4.3). The Cleaner refuses those that are
-- ready for cleaning where cleaning is switched off.
CREATE OR REPLACE FUNCTION mark_refused(compaction_id bigint, in_worker text, message text) RETURNS boolean
LANGUAGE sql AS $$
    WITH updated AS (
        UPDATE compaction SET state = 'c', worker = NULL, ended_at = clock_timestamp(), error_message = message
         WHERE id = compaction_id
           AND (state IN ('i', 'r') OR state = 'w' AND worker = coalesce(in_worker, worker))
        RETURNING 1
    )
    SELECT EXISTS (SELECT 1 FROM updated);
$$;
