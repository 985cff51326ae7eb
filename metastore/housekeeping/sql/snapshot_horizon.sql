-- Every database transaction below this one has ended for all who have a snapshot: what it committed is visible to
-- each open transaction, and to all that are opened later. Never goes back.
CREATE OR REPLACE FUNCTION snapshot_horizon() RETURNS xid8
LANGUAGE plpgsql AS $$
DECLARE
    horizon xid8;
BEGIN
    -- An open in flight has taken its snapshot but is not visible yet; it holds the counter.
    PERFORM 1 FROM txn_counter FOR SHARE;
    SELECT least(min(pg_snapshot_xmin(t.opened_snapshot)), pg_snapshot_xmin(pg_current_snapshot())) INTO horizon
      FROM txn t WHERE t.state = 'o';
    RETURN horizon;
END
$$;
