-- Those of some tables that have more than `more_than` deltas in one place: the place with the most, how many places
-- have too many, and what the Initiator last said of that one, or of the table as a whole.
CREATE OR REPLACE FUNCTION crowded_tables(dbs text[], tbls text[], more_than integer)
RETURNS TABLE (db text, tbl text, partition text, deltas integer, places bigint, decision text)
LANGUAGE sql STABLE AS $$
    SELECT worst.db, worst.tbl, worst.partition, worst.value, worst.places,
           (SELECT v.message FROM compaction_decision v
             WHERE v.db = worst.db AND v.tbl = worst.tbl AND v.service = 'initiator'
               AND (v.partition IS NULL OR v.partition = worst.partition)
             ORDER BY v.partition NULLS LAST LIMIT 1)
      FROM (SELECT DISTINCT a.db, a.tbl FROM unnest(dbs, tbls) AS a (db, tbl)) AS asked
     CROSS JOIN LATERAL (SELECT m.db, m.tbl, m.partition, m.value, count(*) OVER () AS places
                           FROM compaction_metric m
                          WHERE m.db = asked.db AND m.tbl = asked.tbl AND m.type = 1 AND m.value > more_than
                          ORDER BY m.value DESC, m.partition LIMIT 1) AS worst
     ORDER BY worst.db, worst.tbl;
$$;
