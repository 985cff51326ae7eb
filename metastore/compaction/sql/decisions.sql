-- What the services last decided of a table and its partitions; of one partition and the table as a whole, if it is
-- given. `at_ms` is since when it has been just so.
CREATE OR REPLACE FUNCTION decisions(in_db text, in_tbl text, in_partition text)
RETURNS TABLE (partition text, service text, code text, message text, blocker bigint, at_ms bigint)
LANGUAGE sql STABLE AS $$
    SELECT v.partition, v.service, v.code, v.message, v.blocker, epoch_ms(v.decided_at)
      FROM compaction_decision v
     WHERE v.db = in_db AND v.tbl = in_tbl
       AND (in_partition IS NULL OR v.partition IS NULL OR v.partition = in_partition)
     ORDER BY v.partition NULLS FIRST, v.service DESC;
$$;
