-- Brings a dropped table back with its partitions and write ids; its directories are in place. Outcome: ok, gone (it was
-- brought back or purged meanwhile), or moving (the Cleaner has just taken one of the directories).
--
-- Its write ids belong to the transactions they belonged to, so that each snapshot sees what it saw before the drop. Those
-- given out since then are not given out again; who has one and is open is aborted: it began to write when there was no table.
CREATE OR REPLACE FUNCTION catalog_restore_dropped(wanted_id bigint) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    this dropped_table;
    places text[];
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
    IF this.last_write_id IS NOT NULL THEN
        PERFORM txn_restore_table(this.database, this.name, this.last_write_id, this.write_ids, this.aborted_components);
    END IF;
    DELETE FROM dropped_table WHERE id = wanted_id;
    RETURN 'ok';
END
$$;
