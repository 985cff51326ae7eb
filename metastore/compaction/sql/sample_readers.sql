-- How many readers each table has at a time, on average: open transactions that hold a read lock or a lease on it now
-- are counted, and weigh `weight` against what was known before (metastore.compaction.cost). Returns all tables that
-- have some; those that have had none for long are forgotten.
CREATE OR REPLACE FUNCTION sample_readers(weight real) RETURNS TABLE (db text, tbl text, readers real)
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);  -- what a crash takes is a sample among many
    UPDATE compaction_readers SET readers = compaction_readers.readers * (1 - weight);
    INSERT INTO compaction_readers AS r (db, tbl, readers)
    SELECT s.db, s.tbl, weight * count(DISTINCT s.txn_id)
      FROM (SELECT l.db, l.tbl, l.txn_id FROM lock_component l
             WHERE l.type = 'r' AND l.state = 'a' AND l.txn_id > 0 AND l.tbl <> ''
            UNION ALL
            SELECT m.db, m.tbl, m.txn_id FROM min_history_write_id m
              -- Of hive-acid's, those that write name their tables as well.
              JOIN txn w ON w.txn_id = m.txn_id AND (w.type = 2 OR w.may_begin_again IS NULL)) AS s
      JOIN txn t ON t.txn_id = s.txn_id AND t.state = 'o' AND t.type NOT IN (3, 6)
     GROUP BY s.db, s.tbl ORDER BY s.db, s.tbl
    ON CONFLICT ON CONSTRAINT compaction_readers_pkey DO UPDATE SET readers = r.readers + excluded.readers;
    DELETE FROM compaction_readers WHERE compaction_readers.readers < 0.001;
    RETURN QUERY SELECT r.db, r.tbl, r.readers FROM compaction_readers r;
END
$$;
