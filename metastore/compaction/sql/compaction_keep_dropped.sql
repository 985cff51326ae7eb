-- Hands the directories of a table to the Cleaner if transactions are open that may read them: it removes
-- them when those have ended, or moves them to their place in the trash. False, and nothing done, if there are none.
-- Called inside the transaction that drops it.
CREATE OR REPLACE FUNCTION compaction_keep_dropped(
    in_db text, in_tbl text, places text[], trashes text[]
) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    horizon bigint;
BEGIN
    -- No open may be in flight: who opens later does not find the table, who opened before has an id up to last_id.
    SELECT k.last_id INTO horizon FROM txn_counter k FOR UPDATE;
    IF NOT EXISTS (
        SELECT 1 FROM txn t
         WHERE t.state = 'o'
           AND (NOT EXISTS (SELECT 1 FROM min_history_write_id m WHERE m.txn_id = t.txn_id)
                OR EXISTS (SELECT 1 FROM min_history_write_id m
                            WHERE m.txn_id = t.txn_id AND m.db = in_db AND m.tbl = in_tbl)))
    THEN
        RETURN false;
    END IF;
    INSERT INTO compaction (state, type, db, tbl, partition, enqueued_at, committed_at, next_txn_id, highest_write_id,
                            properties)
    SELECT 'r', 'a', in_db, in_tbl, NULL, clock_timestamp(), clock_timestamp(), horizon,
           coalesce((SELECT w.last_write_id FROM write_id_counter w WHERE w.db = in_db AND w.tbl = in_tbl), 0),
           jsonb_strip_nulls(jsonb_build_object(
               'location', p.place, 'trash', p.trash, 'ids', ids_at(in_db, in_tbl, p.place)))
      FROM unnest(places, trashes) AS p (place, trash);
    RETURN true;
END
$$;
