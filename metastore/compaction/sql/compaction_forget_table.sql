-- Forgets the compactions of a dropped table, but for what is handed to the Cleaner by its location: that is what
-- remains of the table. Called inside the transaction that drops it.
CREATE OR REPLACE FUNCTION compaction_forget_table(in_db text, in_tbl text) RETURNS void
LANGUAGE sql AS $$
    DELETE FROM compaction WHERE db = in_db AND tbl = in_tbl AND NOT (state = 'r' AND properties ? 'location');
    DELETE FROM compaction_metric WHERE db = in_db AND tbl = in_tbl;
    DELETE FROM compaction_decision WHERE db = in_db AND tbl = in_tbl;
    DELETE FROM compaction_readers WHERE db = in_db AND tbl = in_tbl;
$$;
