-- Locks places until the end of the transaction: those that are taken or given up alone, what is above them together with
-- others. So of two transactions one of which has a place at or below that of the other, the second waits. `places` come
-- in an order that all keep.
CREATE OR REPLACE FUNCTION lock_places(places text[], alone boolean[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    wanted record;
BEGIN
    FOR wanted IN SELECT p.place, p.is_alone FROM unnest(places, alone) WITH ORDINALITY AS p (place, is_alone, n) ORDER BY p.n
    LOOP
        IF wanted.is_alone THEN
            PERFORM pg_advisory_xact_lock(advisory_key(5, wanted.place));
        ELSE
            PERFORM pg_advisory_xact_lock_shared(advisory_key(5, wanted.place));
        END IF;
    END LOOP;
END
$$;
