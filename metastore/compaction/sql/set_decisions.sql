-- Puts down what a service decided of tables and partitions: `looks` is an array of objects {"db", "tbl", "partition",
-- "code", "message", "blocker"}, in which each target is once; a null code takes its decision back. Only what has changed
-- is written, so a decision's time says since when; returns how much that was. Safe to repeat.
CREATE OR REPLACE FUNCTION set_decisions(in_service text, looks jsonb) RETURNS bigint
LANGUAGE sql AS $$
    WITH asked AS MATERIALIZED (
        SELECT l.*
          FROM jsonb_to_recordset(looks) AS l (db text, tbl text, partition text, code text,
                                                              message text, blocker bigint)
    ), taken_back AS (
        DELETE FROM compaction_decision v USING asked a
         WHERE a.code IS NULL AND v.service = in_service AND v.db = a.db AND v.tbl = a.tbl
           AND v.partition IS NOT DISTINCT FROM a.partition
        RETURNING 1
    ), put_down AS (
        INSERT INTO compaction_decision AS v (db, tbl, partition, service, code, message, blocker, decided_at)
        SELECT a.db, a.tbl, a.partition, in_service, a.code, a.message, a.blocker, clock_timestamp()
          FROM asked a
         WHERE a.code IS NOT NULL AND NOT EXISTS (  -- a conflict would lock the row, which is a write, too
                SELECT 1 FROM compaction_decision s
                 WHERE s.db = a.db AND s.tbl = a.tbl AND s.partition IS NOT DISTINCT FROM a.partition
                   AND s.service = in_service
                   AND (s.code, s.message, s.blocker) IS NOT DISTINCT FROM (a.code, a.message, a.blocker))
         -- In one order for everybody, so that two who write the same do not wait for each other in a circle.
         ORDER BY a.db, a.tbl, a.partition
        ON CONFLICT (db, tbl, partition, service) DO UPDATE
           SET code = excluded.code, message = excluded.message, blocker = excluded.blocker,
               decided_at = excluded.decided_at
        RETURNING 1
    )
    SELECT (SELECT count(*) FROM taken_back) + (SELECT count(*) FROM put_down);
$$;
