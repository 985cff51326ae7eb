-- Puts down what a service decided of a table or partition; a null code takes it back. Writes nothing if it has decided
-- just so before, whose time then stays: it says since when. Safe to repeat.
CREATE OR REPLACE FUNCTION set_verdict(
    in_db text, in_tbl text, in_partition text, in_service text, in_code text, in_message text, in_blocker bigint
) RETURNS void
LANGUAGE sql AS $$
    DELETE FROM compaction_verdict
     WHERE in_code IS NULL AND db = in_db AND tbl = in_tbl AND partition IS NOT DISTINCT FROM in_partition
       AND service = in_service;
    INSERT INTO compaction_verdict AS v (db, tbl, partition, service, code, message, blocker, decided_at)
    SELECT in_db, in_tbl, in_partition, in_service, in_code, in_message, in_blocker, clock_timestamp()
     WHERE in_code IS NOT NULL AND NOT EXISTS (  -- a conflict would lock the row, which is a write, too
            SELECT 1 FROM compaction_verdict s
             WHERE s.db = in_db AND s.tbl = in_tbl AND s.partition IS NOT DISTINCT FROM in_partition
               AND s.service = in_service
               AND (s.code, s.message, s.blocker) IS NOT DISTINCT FROM (in_code, in_message, in_blocker))
    ON CONFLICT (db, tbl, partition, service) DO UPDATE
       SET code = excluded.code, message = excluded.message, blocker = excluded.blocker,
           decided_at = excluded.decided_at;
$$;
