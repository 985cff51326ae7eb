-- Notes the name of the job that a worker started for a compaction.
CREATE OR REPLACE FUNCTION set_hadoop_jobid(compaction_id bigint, in_job_id text) RETURNS boolean
LANGUAGE sql AS $$
    WITH updated AS (UPDATE compaction SET job_id = in_job_id WHERE id = compaction_id AND state = 'w' RETURNING 1)
    SELECT EXISTS (SELECT 1 FROM updated);
$$;
