-- Notes which tables a transaction reads, and the write id from which on something may be open to it
-- (transactions.md §2.4): once it has named some, it holds the Cleaner back on no others. So it may name a further one
-- only if nothing has been replaced there since it was opened. Outcome: ok; replaced, with the table, and nothing is
-- noted; txn_aborted, txn_committed or txn_unknown. Safe to repeat; the smaller write id stays.
CREATE OR REPLACE FUNCTION add_min_history(reader bigint, dbs text[], tbls text[], write_ids bigint[])
RETURNS TABLE (outcome text, db text, tbl text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    found_state text;
BEGIN
    SELECT t.state INTO found_state FROM txn t WHERE t.txn_id = reader FOR SHARE;
    IF found_state IS DISTINCT FROM 'o' THEN
        RETURN QUERY SELECT CASE found_state
            WHEN 'a' THEN 'txn_aborted' WHEN 'c' THEN 'txn_committed' ELSE 'txn_unknown' END, NULL::text, NULL::text;
        RETURN;
    END IF;
    -- The Cleaner may be at what was replaced already. Of a place the newest that has been cleaned stays on record
    -- (purge_compactions).
    RETURN QUERY
        SELECT 'replaced', r.db, r.tbl FROM unnest(dbs, tbls) AS r (db, tbl)
         WHERE EXISTS (SELECT 1 FROM min_history_write_id m WHERE m.txn_id = reader)
           AND NOT EXISTS (SELECT 1 FROM min_history_write_id m
                            WHERE m.txn_id = reader AND m.db = r.db AND m.tbl = r.tbl)
           AND EXISTS (SELECT 1 FROM compaction c
                        WHERE c.db = r.db AND c.tbl = r.tbl AND c.state IN ('r', 's') AND c.next_txn_id >= reader)
         LIMIT 1;
    IF FOUND THEN
        RETURN;
    END IF;
    INSERT INTO min_history_write_id AS m (txn_id, db, tbl, write_id)
    SELECT reader, r.db, r.tbl, min(r.write_id) FROM unnest(dbs, tbls, write_ids) AS r (db, tbl, write_id)
     GROUP BY r.db, r.tbl ORDER BY r.db, r.tbl
    ON CONFLICT (txn_id, db, tbl) DO UPDATE SET write_id = least(m.write_id, excluded.write_id);
    RETURN QUERY SELECT 'ok', NULL::text, NULL::text;
END
$$;
