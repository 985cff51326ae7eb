-- Whether what is left of a dropped table of this name waits for the Cleaner, so that readers may ask for its write ids.
CREATE OR REPLACE FUNCTION compaction_holds_table(in_db text, in_tbl text) RETURNS boolean
LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT 1 FROM compaction c
                    WHERE c.db = in_db AND c.tbl = in_tbl AND c.state = 'r' AND c.partition IS NULL
                      AND c.properties ? 'location')
$$;
