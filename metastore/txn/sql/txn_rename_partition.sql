-- Carries components, changes and locks of a partition over to its new name (transactions.md §2.4). Called inside the
-- transaction that renames it.
--
-- A transaction that is open may have written under the one name and go on under the other: it is on record for both, so
-- that its files are found if it aborts. Its updates would miss the rows that have moved: they conflict with the rename.
CREATE OR REPLACE FUNCTION txn_rename_partition(in_db text, in_tbl text, old_partition text, new_partition text)
RETURNS void
LANGUAGE sql AS $$
    INSERT INTO txn_component (txn_id, db, tbl, partition, operation, write_id)
    SELECT c.txn_id, c.db, c.tbl, new_partition, c.operation, c.write_id
      FROM txn_component c WHERE c.db = in_db AND c.tbl = in_tbl AND c.partition = old_partition
    ON CONFLICT DO NOTHING;
    DELETE FROM txn_component c USING txn t
     WHERE c.db = in_db AND c.tbl = in_tbl AND c.partition = old_partition AND t.txn_id = c.txn_id AND t.state <> 'o';
    UPDATE completed_component SET partition = new_partition
     WHERE db = in_db AND tbl = in_tbl AND partition = old_partition;
    UPDATE write_set SET partition = new_partition WHERE db = in_db AND tbl = in_tbl AND partition = old_partition;
    INSERT INTO write_set (db, tbl, partition, operation, txn_id, commit_id, committed_xid)
    SELECT in_db, in_tbl, name, 'u', 0, k.last_id, pg_current_xact_id()
      FROM txn_counter k, unnest(ARRAY[old_partition, new_partition]) AS name;
    UPDATE lock_component SET partition = new_partition WHERE db = in_db AND tbl = in_tbl AND partition = old_partition;
$$;
