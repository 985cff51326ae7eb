-- Forgets everything about a dropped table, so that one of the same name begins anew (transactions.md §2.4). Called
-- inside the transaction that drops it.
CREATE OR REPLACE FUNCTION txn_forget_table(in_db text, in_tbl text) RETURNS void
LANGUAGE sql AS $$
    DELETE FROM txn_component WHERE db = in_db AND tbl = in_tbl;
    DELETE FROM completed_component WHERE db = in_db AND tbl = in_tbl;
    DELETE FROM write_set WHERE db = in_db AND tbl = in_tbl;
    DELETE FROM unresolved_write_id WHERE db = in_db AND tbl = in_tbl;
    DELETE FROM write_id WHERE db = in_db AND tbl = in_tbl;
    DELETE FROM write_id_counter WHERE db = in_db AND tbl = in_tbl;
$$;
