-- Hands a dropped table or partition, or what else a transaction replaced, to the Cleaner (transactions.md §4.3): it goes
-- once the transaction has committed and nobody is left who may read it. Outcome: ok; txn_aborted, txn_committed or
-- txn_unknown; or wrong_type if commits of the transaction's type stamp nothing. Safe to repeat.
CREATE OR REPLACE FUNCTION submit_for_cleanup(
    in_type text, in_db text, in_tbl text, in_partition text, in_properties text, in_run_as text, in_initiator text,
    in_initiator_version text, in_highest_write_id bigint, in_txn_id bigint
) RETURNS TABLE (outcome text)
LANGUAGE plpgsql AS $$
DECLARE
    this txn;
BEGIN
    SELECT t.* INTO this FROM txn t WHERE t.txn_id = in_txn_id FOR NO KEY UPDATE;
    IF this.state IS DISTINCT FROM 'o' THEN
        RETURN QUERY SELECT CASE this.state
            WHEN 'a' THEN 'txn_aborted' WHEN 'c' THEN 'txn_committed' ELSE 'txn_unknown' END;
        RETURN;
    END IF;
    IF this.type NOT IN (3, 5, 6) THEN
        RETURN QUERY SELECT 'wrong_type';
        RETURN;
    END IF;
    INSERT INTO compaction (state, type, db, tbl, partition, enqueued_at, properties, run_as, initiator,
                            initiator_version, highest_write_id, txn_id)
    SELECT 'r', in_type, in_db, in_tbl, in_partition, clock_timestamp(), in_properties::jsonb, in_run_as, in_initiator,
           in_initiator_version, in_highest_write_id, in_txn_id
     WHERE NOT EXISTS (
        SELECT 1 FROM compaction c
         WHERE c.txn_id = in_txn_id AND c.state = 'r' AND c.db = in_db AND c.tbl = in_tbl
           AND c.partition IS NOT DISTINCT FROM in_partition AND c.properties = in_properties::jsonb);
    RETURN QUERY SELECT 'ok';
END
$$;
