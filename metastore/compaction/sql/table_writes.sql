-- All write ids of a table that count for the Cleaner: the last one given out, the open ones and the aborted ones, of
-- transactions up to `horizon`; those of later ones are taken for open. Unlike get_valid_write_ids it leaves out nothing:
-- where a reader's list ends at the first aborted write, the Cleaner has to know the others too, lest it forgets
-- them with their files still there.
CREATE OR REPLACE FUNCTION table_writes(in_db text, in_tbl text, horizon bigint)
RETURNS TABLE (last_write_id bigint, open_ids bigint[], aborted_ids bigint[])
LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT k.last_write_id FROM write_id_counter k WHERE k.db = in_db AND k.tbl = in_tbl), 0),
           -- A row may stand for a run of write ids (see purge_write_ids).
           ARRAY(SELECT generate_series(coalesce(w.first_write_id, w.write_id), w.write_id)
                   FROM write_id w LEFT JOIN txn t ON t.txn_id = w.txn_id
                  WHERE w.db = in_db AND w.tbl = in_tbl AND (w.txn_id > horizon OR t.state = 'o')),
           ARRAY(SELECT w.write_id FROM write_id w JOIN txn t ON t.txn_id = w.txn_id
                  WHERE w.db = in_db AND w.tbl = in_tbl AND w.txn_id <= horizon AND t.state = 'a');
$$;
