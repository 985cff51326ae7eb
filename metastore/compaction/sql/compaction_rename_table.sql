-- Carries the compactions of a table over to its new name, but for what is handed to the Cleaner by its location: that
-- stays behind. Called inside the transaction that renames it.
CREATE OR REPLACE FUNCTION compaction_rename_table(old_db text, old_tbl text, new_db text, new_tbl text) RETURNS void
LANGUAGE sql AS $$
    UPDATE compaction SET db = new_db, tbl = new_tbl
     WHERE db = old_db AND tbl = old_tbl AND NOT (state = 'r' AND properties ? 'location');
    UPDATE compaction_metric SET db = new_db, tbl = new_tbl WHERE db = old_db AND tbl = old_tbl;
    UPDATE compaction_decision SET db = new_db, tbl = new_tbl WHERE db = old_db AND tbl = old_tbl;
    INSERT INTO compaction_setting_change (db, tbl, changed_at)
    SELECT new_db, new_tbl, s.changed_at FROM compaction_setting_change s WHERE s.db = old_db AND s.tbl = old_tbl
    ON CONFLICT (db, tbl) DO UPDATE SET changed_at = excluded.changed_at;
$$;
