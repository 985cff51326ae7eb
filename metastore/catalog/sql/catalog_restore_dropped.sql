-- Brings a dropped table back with its partitions and write ids; its directories are in place. Outcome: ok, gone (it was
-- brought back or purged meanwhile), or moving (the Cleaner has just taken one of the directories). Who was writing to it at
-- the drop and is open still is aborted, since these rows do not come back.
CREATE OR REPLACE FUNCTION catalog_restore_dropped(wanted_id bigint, in_user text) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    this dropped_table;
    places text[];
    partitions text[];
BEGIN
    SELECT * INTO this FROM dropped_table d WHERE d.id = wanted_id FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'gone';
    END IF;
    places := ARRAY(SELECT d.location FROM dropped_directory d WHERE d.dropped_id = wanted_id);
    IF EXISTS (SELECT 1 FROM directory_removal r WHERE r.location = ANY (places)) THEN
        RETURN 'moving';
    END IF;
    PERFORM compaction_give_back(places);
    INSERT INTO tbl OVERRIDING SYSTEM VALUE SELECT (jsonb_populate_record(NULL::tbl, this.definition)).*;
    INSERT INTO partition OVERRIDING SYSTEM VALUE
    SELECT (jsonb_populate_record(NULL::partition, p.definition)).*
      FROM dropped_partition p WHERE p.dropped_id = wanted_id;
    PERFORM abort_txns(this.writers, format('it was writing to %s.%s when that was dropped', this.database, this.name))
      WHERE cardinality(this.writers) > 0;
    IF this.last_write_id IS NOT NULL THEN
        PERFORM txn_forget_table(this.database, this.name);  -- kept for readers that were running at the drop
        partitions := ARRAY(SELECT p.definition ->> 'name' FROM dropped_partition p WHERE p.dropped_id = wanted_id);
        PERFORM repl_begin_table(this.database, this.name, this.last_write_id, this.invalid_write_ids, partitions, in_user,
                                 '');
    END IF;
    DELETE FROM dropped_table WHERE id = wanted_id;
    RETURN 'ok';
END
$$;
