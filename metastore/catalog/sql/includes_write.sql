-- Whether statistics that include all writes up to `mark` but the open ones, and `own_write_id`, include another one. A
-- write that never asked for its write id is not known to be.
CREATE OR REPLACE FUNCTION includes_write(own_write_id bigint, mark bigint, open_ids bigint[], in_write_id bigint)
RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(in_write_id = own_write_id OR in_write_id <= mark AND in_write_id <> ALL (open_ids), false);
$$;
