-- Carries write ids, components, locks and readers of a table over to its new name (transactions.md §2.4). Called inside
-- the transaction that renames it.
CREATE OR REPLACE FUNCTION txn_rename_table(old_db text, old_tbl text, new_db text, new_tbl text) RETURNS void
LANGUAGE sql AS $$
    UPDATE txn_component SET db = new_db, tbl = new_tbl WHERE db = old_db AND tbl = old_tbl;
    UPDATE completed_component SET db = new_db, tbl = new_tbl WHERE db = old_db AND tbl = old_tbl;
    UPDATE write_set SET db = new_db, tbl = new_tbl WHERE db = old_db AND tbl = old_tbl;
    UPDATE write_id SET db = new_db, tbl = new_tbl WHERE db = old_db AND tbl = old_tbl;
    UPDATE unresolved_write_id SET db = new_db, tbl = new_tbl WHERE db = old_db AND tbl = old_tbl;
    UPDATE write_id_counter SET db = new_db, tbl = new_tbl WHERE db = old_db AND tbl = old_tbl;
    -- Who has named both names keeps the one row; a name that another view had is free by now.
    INSERT INTO min_history_write_id AS m (txn_id, db, tbl, write_id)
    SELECT h.txn_id, new_db, new_tbl, h.write_id FROM min_history_write_id h WHERE h.db = old_db AND h.tbl = old_tbl
    ON CONFLICT (txn_id, db, tbl) DO UPDATE SET write_id = least(m.write_id, excluded.write_id);
    DELETE FROM min_history_write_id WHERE db = old_db AND tbl = old_tbl;
    DELETE FROM materialization_rebuild_lock WHERE db = new_db AND tbl = new_tbl;
    UPDATE materialization_rebuild_lock SET db = new_db, tbl = new_tbl WHERE db = old_db AND tbl = old_tbl;
    UPDATE lock_component SET db = new_db, tbl = new_tbl WHERE db = old_db AND tbl = old_tbl;
$$;
