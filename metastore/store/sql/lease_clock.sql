-- What this clock shows, and when the lease ends or ended that somebody had last: null if nobody ever had it. Both in
-- milliseconds since 1970.
CREATE OR REPLACE FUNCTION lease_clock(lease_name text) RETURNS TABLE (shown_ms bigint, last_ms bigint)
LANGUAGE sql AS $$
    SELECT c.shown_ms, (SELECT (extract(epoch FROM l.expires_at) * 1000)::bigint FROM lease l WHERE l.name = lease_name)
      FROM database_clock() c;
$$;
