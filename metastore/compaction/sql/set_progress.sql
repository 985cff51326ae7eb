-- Notes how far a worker is (transactions.md §4.3): the job that does the work, what that last said, the files that it
-- replaces and has made. What is null stays as it was. False if the compaction is not this worker's any more.
CREATE OR REPLACE FUNCTION set_progress(
    compaction_id bigint, in_worker text, in_job_id text, in_progress text, in_files_before integer,
    in_bytes_before bigint, in_files_after integer, in_bytes_after bigint
) RETURNS boolean
LANGUAGE sql AS $$
    WITH updated AS (
        UPDATE compaction
           SET job_id = coalesce(in_job_id, job_id),
               progress = coalesce(
                   in_progress::jsonb || jsonb_build_object('at', epoch_ms(clock_timestamp())), progress),
               files_before = coalesce(in_files_before, files_before),
               bytes_before = coalesce(in_bytes_before, bytes_before),
               files_after = coalesce(in_files_after, files_after),
               bytes_after = coalesce(in_bytes_after, bytes_after)
         WHERE id = compaction_id AND state = 'w' AND worker = in_worker
        RETURNING 1
    )
    SELECT EXISTS (SELECT 1 FROM updated);
$$;
