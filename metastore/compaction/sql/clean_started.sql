-- Notes when the Cleaner took up a compaction, for those who watch.
CREATE OR REPLACE FUNCTION clean_started(compaction_id bigint) RETURNS boolean
LANGUAGE sql AS $$
    WITH updated AS (
        UPDATE compaction SET cleaner_started_at = clock_timestamp() WHERE id = compaction_id AND state = 'r'
        RETURNING 1
    )
    SELECT EXISTS (SELECT 1 FROM updated);
$$;
