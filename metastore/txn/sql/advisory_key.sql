-- Key of an advisory lock on a name; `purpose` keeps different uses apart: 1 commits to a table, 2 lock requests, 3
-- openings for a replication policy, 4 looks for deadlocks, 5 places of the catalogue.
CREATE OR REPLACE FUNCTION advisory_key(purpose integer, name text) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT hashtextextended(name, purpose);
$$;
