-- Removes committed changes below the `snapshot_horizon`: no open transaction can conflict with them any more.
-- Returns how many.
CREATE OR REPLACE FUNCTION purge_write_set(horizon xid8) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    purged bigint;
BEGIN
    DELETE FROM write_set WHERE committed_xid < horizon;
    GET DIAGNOSTICS purged = ROW_COUNT;
    RETURN purged;
END
$$;
