-- The output is in place: what it replaces is the Cleaner's once the compaction's transaction has committed
-- (transactions.md §4.3). False if the compaction is not this worker's (any worker's, if null) any more. Safe to repeat
-- for a worker that missed the answer.
CREATE OR REPLACE FUNCTION mark_compacted(compaction_id bigint, in_worker text) RETURNS boolean
LANGUAGE sql AS $$
    WITH updated AS (
        UPDATE compaction
           SET state = 'r', last_worker = worker, worker = NULL,
               reason = 'compacted: what it replaces is removed once no reader needs it'
         WHERE id = compaction_id AND state = 'w' AND worker = coalesce(in_worker, worker)
        RETURNING 1
    )
    SELECT EXISTS (SELECT 1 FROM updated)
        OR EXISTS (SELECT 1 FROM compaction
                    WHERE id = compaction_id AND state = 'r'
                      AND last_worker = coalesce(in_worker, last_worker));
$$;
