-- Makes sure, to the end of the database transaction, that a lease is held under an epoch: nobody takes it over until
-- then. Raises HA001 if it is not. Every change that a background service makes is behind this check.
CREATE OR REPLACE FUNCTION check_lease(lease_name text, held_epoch bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    -- Conflicts with FOR UPDATE, by which a lease is taken over, not with a renewal.
    PERFORM 1 FROM lease l
     WHERE l.name = lease_name AND l.epoch = held_epoch AND l.expires_at > clock_timestamp() FOR KEY SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'the lease ''%'' is not held under epoch % any more', lease_name, held_epoch
              USING ERRCODE = 'HA001';
    END IF;
    RETURN true;
END
$$;
