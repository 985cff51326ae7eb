-- A directory of a dropped table is gone. With the last one go its write ids, unless a table of that name needs them again;
-- the history of the cleaning stays. Called inside the transaction that says that the directory is gone.
CREATE OR REPLACE FUNCTION forget_dropped(in_db text, in_tbl text) RETURNS void
LANGUAGE sql AS $$
    SELECT txn_forget_table(in_db, in_tbl)
     WHERE NOT compaction_holds_table(in_db, in_tbl)
       AND NOT EXISTS (SELECT 1 FROM tbl t WHERE t.database = in_db AND t.name = in_tbl);
$$;
