-- The tables that these compactions are of, as far as they are known.
CREATE OR REPLACE FUNCTION compaction_targets(in_ids bigint[])
RETURNS TABLE (db text, tbl text)
LANGUAGE sql STABLE AS $$
    SELECT DISTINCT c.db, c.tbl FROM compaction c WHERE c.id = ANY (in_ids);
$$;
