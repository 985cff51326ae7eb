-- Tells all servers which lock requests have gone, once this database transaction has committed: those in the way of a
-- waiting one, and of the gone ones those `waited` for, whose callers must learn it. With nobody waiting nothing is
-- told, since tellers commit one by one. The payload is the ids, comma between; empty for more than it can take,
-- which is to wake everybody.
CREATE OR REPLACE FUNCTION tell_freed(freed bigint[], waited bigint[]) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    told bigint[] := ARRAY(SELECT DISTINCT l.blocker_lock FROM lock_component l
                            WHERE l.blocker_lock = ANY (freed));
    payload text;
BEGIN
    IF told <> '{}' OR waited IS NOT NULL THEN
        payload := array_to_string(told || waited, ',');
        PERFORM pg_notify('hive_acid_locks', CASE WHEN length(payload) < 8000 THEN payload ELSE '' END);
    END IF;
END
$$;
