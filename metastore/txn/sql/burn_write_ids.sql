-- Takes the write ids of a table away from transactions that are to get new ones (transactions.md §2.1).
-- Files under the old id may exist, so it must never become valid: it passes to a transaction that is aborted from
-- the start, and everything that deals with aborted writes deals with it.
CREATE OR REPLACE FUNCTION burn_write_ids(in_db text, in_tbl text, txn_ids bigint[]) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    burnt bigint[];
    owner_id bigint;
BEGIN
    burnt := ARRAY(SELECT w.write_id FROM write_id w
                    WHERE w.db = in_db AND w.tbl = in_tbl AND w.txn_id = ANY (txn_ids) ORDER BY w.write_id);
    FOR i IN 1 .. cardinality(burnt) LOOP
        SELECT seed_ended_txns(1, t.user_name, t.host_name, 'write id given up by ' || t.txn_id) INTO owner_id
          FROM write_id w JOIN txn t ON t.txn_id = w.txn_id
         WHERE w.db = in_db AND w.tbl = in_tbl AND w.write_id = burnt[i];
        UPDATE unresolved_write_id SET txn_id = owner_id, is_aborted = true
         WHERE db = in_db AND tbl = in_tbl AND write_id = burnt[i] AND txn_id = ANY (txn_ids);
        PERFORM aborted_writes_changed(ARRAY[owner_id]);
        UPDATE write_id SET txn_id = owner_id WHERE db = in_db AND tbl = in_tbl AND write_id = burnt[i];
        INSERT INTO txn_component (txn_id, db, tbl, operation, write_id)
        VALUES (owner_id, in_db, in_tbl, 'i', burnt[i]);
    END LOOP;
    RETURN cardinality(burnt);
END
$$;
