-- Removes up to `at_most` committed changes below the writers' `snapshot_horizon`: no open transaction can conflict
-- with them any more. Returns how many.
CREATE OR REPLACE FUNCTION purge_write_set(writers_horizon xid8, at_most integer) RETURNS bigint
LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    purged bigint;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true);  -- what a crash brings back goes again
    DELETE FROM write_set WHERE ctid = ANY (ARRAY(
        SELECT s.ctid FROM write_set s WHERE s.committed_xid < writers_horizon ORDER BY s.committed_xid LIMIT at_most));
    GET DIAGNOSTICS purged = ROW_COUNT;
    RETURN purged;
END
$$;
