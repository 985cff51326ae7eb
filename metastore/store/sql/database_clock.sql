-- What this clock shows, in milliseconds since 1970.
CREATE OR REPLACE FUNCTION database_clock() RETURNS TABLE (shown_ms bigint)
LANGUAGE sql AS $$
    SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
$$;
