-- Cleaning up after aborted transactions failed: a row of type c delays the next attempt, longer each time up to a day
-- (transactions.md §4.10).
CREATE OR REPLACE FUNCTION abort_clean_failed(
    in_db text, in_tbl text, in_partition text, message text, pause_ms bigint
) RETURNS timestamptz
LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz;
BEGIN
    UPDATE compaction c
       SET cleaner_failures = c.cleaner_failures + 1, error_message = message,
           clean_after = clock_timestamp()
                         + least(make_interval(secs => pause_ms / 1000.0 * 2 ^ least(c.cleaner_failures, 20)), '1 day')
     WHERE c.type = 'c' AND c.state = 'r' AND c.db = in_db AND c.tbl = in_tbl
       AND c.partition IS NOT DISTINCT FROM in_partition
    RETURNING c.clean_after INTO until;
    IF NOT FOUND THEN
        INSERT INTO compaction (state, type, db, tbl, partition, enqueued_at, cleaner_failures, clean_after,
                                error_message)
        VALUES ('r', 'c', in_db, in_tbl, in_partition, clock_timestamp(), 1,
                clock_timestamp() + make_interval(secs => pause_ms / 1000.0), message)
        RETURNING clean_after INTO until;
    END IF;
    RETURN until;
END
$$;
