-- Gives a table that comes back the write ids that it had, up to `last_id`: `write_ids` and `components` are the rows of
-- write_id and, of aborted transactions, of txn_component (see catalog_keep_dropped). Called inside the transaction that
-- brings it back.
--
-- Its ids may be on record still, for readers; or those of a table that had its name meanwhile. Ids above stay as they are.
CREATE OR REPLACE FUNCTION txn_restore_table(
    in_db text, in_tbl text, last_id bigint, write_ids jsonb, components jsonb
) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    writers bigint[];
    aborted bigint[];
BEGIN
    INSERT INTO write_id_counter AS k (db, tbl, last_write_id) VALUES (in_db, in_tbl, last_id)
    ON CONFLICT (db, tbl) DO UPDATE
       SET last_write_id = greatest(k.last_write_id, last_id), aborted_version = nextval('table_version'),
           reserved_write_id = greatest(k.reserved_write_id, last_id);
    writers := ARRAY(SELECT u.txn_id FROM unresolved_write_id u
                      WHERE u.db = in_db AND u.tbl = in_tbl AND NOT u.is_aborted
                     UNION
                     SELECT t.txn_id FROM jsonb_populate_recordset(NULL::write_id, write_ids) w JOIN txn t USING (txn_id)
                      WHERE t.state = 'o' ORDER BY 1);
    IF writers <> '{}' THEN
        PERFORM abort_txns(writers, format('it was writing to %s.%s while that was dropped', in_db, in_tbl));
    END IF;
    DELETE FROM write_id w WHERE w.db = in_db AND w.tbl = in_tbl AND w.write_id <= last_id;
    DELETE FROM unresolved_write_id u WHERE u.db = in_db AND u.tbl = in_tbl AND u.write_id <= last_id;
    DELETE FROM txn_component c WHERE c.db = in_db AND c.tbl = in_tbl AND c.write_id <= last_id;
    INSERT INTO write_id SELECT w.* FROM jsonb_populate_recordset(NULL::write_id, write_ids) w;
    -- Of the transactions that aborted there may be no trace left, and the one that dropped the table has ended since.
    aborted := ARRAY(SELECT DISTINCT c.txn_id FROM jsonb_populate_recordset(NULL::txn_component, components) c
                     UNION
                     SELECT t.txn_id FROM jsonb_populate_recordset(NULL::write_id, write_ids) w JOIN txn t USING (txn_id)
                      WHERE t.state = 'a');
    PERFORM put_aborted_txns(aborted, '', '', 'aborted before the table was dropped');
    INSERT INTO unresolved_write_id (txn_id, db, tbl, write_id, is_aborted)
    SELECT w.txn_id, w.db, w.tbl, w.write_id, true
      FROM jsonb_populate_recordset(NULL::write_id, write_ids) w WHERE w.txn_id = ANY (aborted);
    INSERT INTO txn_component SELECT c.* FROM jsonb_populate_recordset(NULL::txn_component, components) c;
END
$$;
