-- Puts a compaction back into the queue as if its worker, which stops, had never taken it. False if it is not this
-- worker's any more.
CREATE OR REPLACE FUNCTION release_compaction(compaction_id bigint, in_worker text) RETURNS boolean
LANGUAGE sql AS $$
    WITH updated AS (
        UPDATE compaction
           SET state = 'i', last_worker = worker, worker = NULL, started_at = NULL, txn_id = NULL,
               highest_write_id = NULL, job_id = NULL, progress = NULL, files_before = NULL,
               bytes_before = NULL, files_after = NULL, bytes_after = NULL, has_more = false,
               attempts = attempts - 1,
               reason = format('waits for a worker: %s was stopped with its server', worker)
         WHERE id = compaction_id AND state = 'w' AND worker = in_worker
        RETURNING 1
    )
    SELECT EXISTS (SELECT 1 FROM updated);
$$;
