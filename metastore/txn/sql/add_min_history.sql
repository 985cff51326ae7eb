-- Notes which tables a transaction reads, and the write id from which on something may be open to it
-- (transactions.md §2.4): once it has named some, it holds the Cleaner back on no others. Outcome: ok, txn_aborted,
-- txn_committed or txn_unknown. Safe to repeat; the smaller write id stays.
CREATE OR REPLACE FUNCTION add_min_history(reader bigint, dbs text[], tbls text[], write_ids bigint[])
RETURNS TABLE (outcome text)
LANGUAGE plpgsql AS $$
DECLARE
    found_state text;
BEGIN
    SELECT t.state INTO found_state FROM txn t WHERE t.txn_id = reader FOR SHARE;
    IF found_state IS DISTINCT FROM 'o' THEN
        RETURN QUERY SELECT CASE found_state
            WHEN 'a' THEN 'txn_aborted' WHEN 'c' THEN 'txn_committed' ELSE 'txn_unknown' END;
        RETURN;
    END IF;
    INSERT INTO min_history_write_id AS m (txn_id, db, tbl, write_id)
    SELECT reader, r.db, r.tbl, min(r.write_id) FROM unnest(dbs, tbls, write_ids) AS r (db, tbl, write_id)
     GROUP BY r.db, r.tbl ORDER BY r.db, r.tbl
    ON CONFLICT (txn_id, db, tbl) DO UPDATE SET write_id = least(m.write_id, excluded.write_id);
    RETURN QUERY SELECT 'ok';
END
$$;
