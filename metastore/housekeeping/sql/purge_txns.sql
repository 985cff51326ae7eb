-- Forgets finished transactions: committed ones `retention_ms` after their end, until when a repeated commit is
-- answered, once they are below the `snapshot_horizon`; aborted ones once nothing of theirs is left in files, and
-- their write ids with them. Returns how many.
CREATE OR REPLACE FUNCTION purge_txns(retention_ms bigint, horizon xid8) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    committed bigint;
    aborted bigint;
    latest timestamptz := clock_timestamp() - make_interval(secs => retention_ms / 1000.0);
BEGIN
    DELETE FROM txn t WHERE t.state = 'c' AND t.ended_at < latest AND t.ended_xid < horizon;
    GET DIAGNOSTICS committed = ROW_COUNT;
    WITH clean AS (
        DELETE FROM txn t
         WHERE t.state = 'a' AND t.ended_at < latest
           AND NOT EXISTS (SELECT 1 FROM txn_component c WHERE c.txn_id = t.txn_id)
        RETURNING t.txn_id
    ), gone AS (DELETE FROM write_id w USING clean WHERE w.txn_id = clean.txn_id)
    SELECT count(*) INTO aborted FROM clean;
    RETURN committed + aborted;
END
$$;
