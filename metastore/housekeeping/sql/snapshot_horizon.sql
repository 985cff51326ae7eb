-- What housekeeping may take for settled. Every database transaction below `horizon` has ended for all who have a
-- snapshot: what it committed is visible to each open transaction, and to all that are opened later; below
-- `writers_horizon` so for the open ones that may write; below `settled` for those that are opened later. None of them
-- ever goes back.
CREATE OR REPLACE FUNCTION snapshot_horizon() RETURNS TABLE (horizon xid8, writers_horizon xid8, settled xid8)
LANGUAGE plpgsql AS $$
BEGIN
    -- Nothing is changed, so nobody need wait for a flush with the counter locked.
    PERFORM set_config('synchronous_commit', 'off', true);
    -- An open in flight has taken its snapshot but is not visible yet; it holds the counter.
    PERFORM 1 FROM txn_counter FOR SHARE;
    settled := pg_snapshot_xmin(pg_current_snapshot());
    -- Opened one by one, transactions have snapshots that begin in their order.
    SELECT least(pg_snapshot_xmin(t.opened_snapshot), settled) INTO horizon
      FROM txn t WHERE t.state = 'o' ORDER BY t.txn_id LIMIT 1;
    SELECT least(pg_snapshot_xmin(t.opened_snapshot), settled) INTO writers_horizon
      FROM txn t WHERE t.state = 'o' AND t.type <> 2 ORDER BY t.txn_id LIMIT 1;
    horizon := coalesce(horizon, settled);
    writers_horizon := coalesce(writers_horizon, settled);
    RETURN NEXT;
END
$$;
