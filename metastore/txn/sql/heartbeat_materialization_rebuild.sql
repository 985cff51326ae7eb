-- Says that the rebuild of a materialised view goes on; false if the transaction does not have it any more
-- (transactions.md §3.10).
CREATE OR REPLACE FUNCTION heartbeat_materialization_rebuild(in_db text, in_tbl text, rebuilding bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE materialization_rebuild_lock m SET heartbeat_at = clock_timestamp()
     WHERE m.db = in_db AND m.tbl = in_tbl AND m.txn_id = rebuilding
       AND EXISTS (SELECT 1 FROM txn t WHERE t.txn_id = rebuilding AND t.state = 'o');
    RETURN FOUND;
END
$$;
