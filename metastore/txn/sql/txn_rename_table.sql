-- Carries write ids, components and locks of a table over to its new name (transactions.md §2.4). Called inside the
-- transaction that renames it.
CREATE OR REPLACE FUNCTION txn_rename_table(old_db text, old_tbl text, new_db text, new_tbl text) RETURNS void
LANGUAGE sql AS $$
    UPDATE txn_component SET db = new_db, tbl = new_tbl WHERE db = old_db AND tbl = old_tbl;
    UPDATE completed_component SET db = new_db, tbl = new_tbl WHERE db = old_db AND tbl = old_tbl;
    UPDATE write_set SET db = new_db, tbl = new_tbl WHERE db = old_db AND tbl = old_tbl;
    UPDATE write_id SET db = new_db, tbl = new_tbl WHERE db = old_db AND tbl = old_tbl;
    UPDATE unresolved_write_id SET db = new_db, tbl = new_tbl WHERE db = old_db AND tbl = old_tbl;
    UPDATE write_id_counter SET db = new_db, tbl = new_tbl WHERE db = old_db AND tbl = old_tbl;
    UPDATE lock_component SET db = new_db, tbl = new_tbl WHERE db = old_db AND tbl = old_tbl;
$$;
