-- The last write id handed out for a table, 0 for one never written (transactions.md §2.4).
CREATE OR REPLACE FUNCTION get_max_write_id(in_db text, in_tbl text) RETURNS bigint
LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT last_write_id FROM write_id_counter WHERE db = in_db AND tbl = in_tbl), 0);
$$;
