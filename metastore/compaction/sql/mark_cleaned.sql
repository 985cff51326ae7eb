-- What a compaction replaced is gone: it succeeded (transactions.md §4.9). With it goes the record of what was written
-- to the table or partition up to its highest write id, aborted writes too, but for `kept_write_ids`, which
-- files may still hold. Neither is touched for other partitions. The directories of its database, if that was dropped, may
-- go now.
CREATE OR REPLACE FUNCTION mark_cleaned(compaction_id bigint, kept_write_ids bigint[]) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    this compaction;
BEGIN
    UPDATE compaction SET state = 's', ended_at = clock_timestamp(), error_message = NULL,
           reason = 'what it replaced is gone'
     WHERE id = compaction_id AND state = 'r'
    RETURNING * INTO this;
    IF NOT FOUND THEN
        -- Said before, and the answer was lost.
        RETURN EXISTS (SELECT 1 FROM compaction c WHERE c.id = compaction_id AND c.state = 's');
    END IF;
    DELETE FROM compaction c
     WHERE c.type = 'c' AND c.state = 'r' AND c.db = this.db AND c.tbl = this.tbl
       AND c.partition IS NOT DISTINCT FROM this.partition;
    -- What the Initiator saw there is no more; it looks anew at what was written since.
    DELETE FROM compaction_decision v
     WHERE v.db = this.db AND v.tbl = this.tbl AND v.partition IS NOT DISTINCT FROM this.partition
       AND v.service = 'initiator';
    DELETE FROM compaction_metric m
     WHERE m.db = this.db AND m.tbl = this.tbl AND m.partition IS NOT DISTINCT FROM this.partition;
    PERFORM outdate_statistics(this.db, this.tbl, this.partition, this.highest_write_id);
    PERFORM resize_statistics(this.db, this.tbl, this.partition, this.files_after - this.files_before,
                              this.bytes_after - this.bytes_before);
    DELETE FROM completed_component c
     WHERE c.db = this.db AND c.tbl = this.tbl AND c.partition IS NOT DISTINCT FROM this.partition
       AND (this.highest_write_id IS NULL OR c.write_id <= this.highest_write_id);
    -- Of transactions up to the horizon alone: a later compaction that failed has left files that are not gone.
    DELETE FROM txn_component c USING txn t
     WHERE c.db = this.db AND c.tbl = this.tbl AND c.partition IS NOT DISTINCT FROM this.partition
       AND t.txn_id = c.txn_id AND t.state = 'a' AND t.txn_id <= this.next_txn_id
       AND c.write_id <= this.highest_write_id AND c.write_id <> ALL (kept_write_ids);
    IF this.partition IS NULL AND this.properties ? 'location' THEN
        PERFORM forget_dropped(this.db, this.tbl);
    END IF;
    PERFORM catalog_note_homes(this.properties ->> 'homes', this.properties ->> 'homes_if_empty', this.db, this.enqueued_at);
    RETURN true;
END
$$;
