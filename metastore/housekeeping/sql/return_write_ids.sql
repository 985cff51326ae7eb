-- Gives back the write ids that were reserved for tables that nobody writes to just now, so that a crash has to bury none
-- of theirs (see recover_from_crash); the next writer reserves anew. At most `at_most` tables; returns how many.
CREATE OR REPLACE FUNCTION return_write_ids(at_most integer) RETURNS TABLE (returned bigint)
LANGUAGE plpgsql AS $$
BEGIN
    WITH idle AS MATERIALIZED (
        SELECT k.db, k.tbl FROM write_id_counter k
         WHERE k.reserved_write_id > k.last_write_id
           AND NOT EXISTS (SELECT 1 FROM unresolved_write_id u
                            WHERE u.db = k.db AND u.tbl = k.tbl AND NOT u.is_aborted)
         ORDER BY k.db, k.tbl LIMIT at_most FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE write_id_counter k SET reserved_write_id = k.last_write_id
      FROM idle i WHERE k.db = i.db AND k.tbl = i.tbl;
    GET DIAGNOSTICS returned = ROW_COUNT;
    RETURN NEXT;
END
$$;
