-- Ends a lease now, if it is held under this epoch still; anybody may take it. Waits for the services at work under it.
-- Safe to repeat.
CREATE OR REPLACE FUNCTION release_lease(lease_name text, held_epoch bigint) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM lease l WHERE l.name = lease_name AND l.epoch = held_epoch FOR UPDATE;
    IF FOUND THEN
        -- The next epoch belongs to nobody: what is begun under this one from now on is refused.
        UPDATE lease SET epoch = epoch + 1, holder = '', expires_at = clock_timestamp() WHERE name = lease_name;
    END IF;
    RETURN FOUND;
END
$$;
