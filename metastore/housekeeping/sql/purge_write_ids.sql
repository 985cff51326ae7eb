-- Removes the write ids of transactions committed below the `snapshot_horizon`, per table up to the first write id for
-- which that is not so: a missing write id counts as committed, and the highest one visible to a snapshot must stay
-- findable (transactions.md §2.2). Returns how many.
CREATE OR REPLACE FUNCTION purge_write_ids(horizon xid8) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    purged bigint;
BEGIN
    WITH kept AS MATERIALIZED (
        SELECT w.db, w.tbl, min(w.write_id) AS write_id
          FROM txn t JOIN write_id w ON w.txn_id = t.txn_id
         WHERE t.state <> 'c' OR t.ended_xid >= horizon
         GROUP BY w.db, w.tbl
    ), settled AS MATERIALIZED (
        SELECT c.db, c.tbl, coalesce(k.write_id, c.last_write_id + 1) AS below
          FROM write_id_counter c LEFT JOIN kept k ON k.db = c.db AND k.tbl = c.tbl
    )
    DELETE FROM write_id w USING settled s WHERE w.db = s.db AND w.tbl = s.tbl AND w.write_id < s.below;
    GET DIAGNOSTICS purged = ROW_COUNT;
    RETURN purged;
END
$$;
