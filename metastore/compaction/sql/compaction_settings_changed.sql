-- Notes that a table, or a database (an empty name of a table), has other parameters by which compactions are decided: the
-- next run of the Initiator looks at what it has. Called inside the transaction that changes them.
CREATE OR REPLACE FUNCTION compaction_settings_changed(in_db text, in_tbl text) RETURNS void
LANGUAGE sql AS $$
    INSERT INTO compaction_setting_change (db, tbl, changed_at) VALUES (in_db, in_tbl, clock_timestamp())
    ON CONFLICT (db, tbl) DO UPDATE SET changed_at = excluded.changed_at;
$$;
