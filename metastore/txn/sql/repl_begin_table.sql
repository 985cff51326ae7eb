-- Begins a replicated table where its source stands (transactions.md §2.4): write ids up to `high_water_mark` are taken,
-- the aborted ones belong to transactions that are aborted from the start, and as these may be in the copied files, a
-- major compaction of the table, or of each of the partitions, is queued. False, and nothing done, if the table has
-- write ids already. Safe to repeat.
CREATE OR REPLACE FUNCTION repl_begin_table(
    in_db text, in_tbl text, high_water_mark bigint, aborted_write_ids bigint[], partitions text[], in_user text,
    in_host text
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    last_owner bigint;
    highest_valid bigint;
    how_many CONSTANT integer := cardinality(aborted_write_ids);
    targets CONSTANT text[] := CASE cardinality(partitions) WHEN 0 THEN ARRAY[NULL::text] ELSE partitions END;
BEGIN
    INSERT INTO write_id_counter (db, tbl, last_write_id) VALUES (in_db, in_tbl, high_water_mark)
    ON CONFLICT DO NOTHING;
    IF NOT FOUND OR how_many = 0 THEN
        RETURN FOUND;
    END IF;
    last_owner := seed_ended_txns(how_many, in_user, in_host, 'aborted at the source of the replica');
    INSERT INTO write_id (db, tbl, write_id, txn_id)
    SELECT in_db, in_tbl, id, last_owner - how_many + position
      FROM unnest(aborted_write_ids) WITH ORDINALITY AS a (id, position);
    INSERT INTO unresolved_write_id (txn_id, db, tbl, write_id, is_aborted)
    SELECT w.txn_id, w.db, w.tbl, w.write_id, true FROM write_id w WHERE w.db = in_db AND w.tbl = in_tbl;
    INSERT INTO txn_component (txn_id, db, tbl, partition, operation, write_id)
    SELECT last_owner - how_many + position, in_db, in_tbl, part, 'i', id
      FROM unnest(aborted_write_ids) WITH ORDINALITY AS a (id, position), unnest(targets) AS part;
    -- Write ids that are not on record count as committed, but of a table with nothing else than aborted ones on record
    -- a snapshot shows nothing (get_valid_write_ids): the highest valid one is put down.
    SELECT max(id) INTO highest_valid FROM generate_series(greatest(1, high_water_mark - how_many), high_water_mark) AS id
     WHERE id <> ALL (aborted_write_ids);
    INSERT INTO write_id (db, tbl, write_id, txn_id)
    SELECT in_db, in_tbl, highest_valid, seed_ended_txns(1, in_user, in_host, NULL) WHERE highest_valid IS NOT NULL;
    PERFORM compact('a', in_db, in_tbl, part, NULL, '{}', NULL, NULL, in_user, in_host, NULL, 0, NULL,
                    'the table came with aborted writes')
       FROM unnest(targets) AS part;
    RETURN true;
END
$$;
