-- Cleaning failed: it is tried again after a pause that doubles, and given up after `max_failures` (transactions.md §4.8).
-- `known_failures` are those that the Cleaner knew of: what has counted this one already is the same call, whose answer
-- was lost. The state then; null if there is nothing to be cleaned any more.
CREATE OR REPLACE FUNCTION clean_failed(
    compaction_id bigint, message text, known_failures integer, pause_ms bigint, max_failures integer
) RETURNS text
LANGUAGE sql AS $$
    WITH counted AS (
        UPDATE compaction
           SET cleaner_failures = cleaner_failures + 1, error_message = message, reason = message,
               state = CASE WHEN cleaner_failures + 1 >= max_failures THEN 'f' ELSE 'r' END,
               ended_at = CASE WHEN cleaner_failures + 1 >= max_failures THEN clock_timestamp() END,
               clean_after = clock_timestamp() + make_interval(secs => pause_ms / 1000.0 * 2 ^ cleaner_failures)
         WHERE id = compaction_id AND state = 'r' AND cleaner_failures = known_failures
        RETURNING state
    )
    SELECT state FROM counted
     UNION ALL
    SELECT state FROM compaction  -- as it was before this call
     WHERE id = compaction_id AND state IN ('r', 'f') AND cleaner_failures = known_failures + 1;
$$;
