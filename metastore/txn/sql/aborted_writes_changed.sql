-- Notes that the aborted write ids of the tables these transactions wrote to are others now: before they go, or after
-- they have come. Who keeps a copy asks for them anew (see current_write_ids).
CREATE OR REPLACE FUNCTION aborted_writes_changed(txn_ids bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    -- In one order everywhere, as allocations do.
    PERFORM 1 FROM write_id_counter k
      WHERE (k.db, k.tbl) IN (SELECT u.db, u.tbl FROM unresolved_write_id u WHERE u.txn_id = ANY (txn_ids))
      ORDER BY k.db, k.tbl FOR NO KEY UPDATE;
    UPDATE write_id_counter k SET aborted_version = nextval('table_version')
     WHERE (k.db, k.tbl) IN (SELECT u.db, u.tbl FROM unresolved_write_id u WHERE u.txn_id = ANY (txn_ids));
END
$$;
