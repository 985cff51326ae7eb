-- Queues the round that goes on where a compaction has ended: the same in all that was asked for, and in its age. If
-- somebody's request was faster, the rest is left to that one.
CREATE OR REPLACE FUNCTION queue_next_round(compaction_id bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    this compaction;
    following bigint;
BEGIN
    SELECT c.* INTO STRICT this FROM compaction c WHERE c.id = compaction_id;
    INSERT INTO compaction AS c (state, type, db, tbl, partition, enqueued_at, pool, properties, order_by, buckets,
                                 run_as, initiator, initiator_version, head_start_s, round, after_write_id, reason)
    VALUES ('i', this.type, this.db, this.tbl, this.partition, this.enqueued_at, this.pool, this.properties,
            this.order_by, this.buckets, this.run_as, this.initiator, this.initiator_version, this.head_start_s,
            this.round + 1, this.highest_write_id,
            format('round %s, compaction %s, ended at write id %s and left deltas behind it',
                   this.round, this.id, this.highest_write_id))
    ON CONFLICT (db, tbl, partition) WHERE c.state IN ('i', 'w') DO NOTHING
    RETURNING c.id INTO following;
    IF following IS NULL THEN
        SELECT c.id INTO following FROM compaction c
         WHERE c.db = this.db AND c.tbl = this.tbl AND c.partition IS NOT DISTINCT FROM this.partition
           AND c.state IN ('i', 'w');
    END IF;
    UPDATE compaction c SET next_id = following WHERE c.id = compaction_id;
END
$$;
