-- Until when a token is good now; null if there is none, or it has ended.
CREATE OR REPLACE FUNCTION renew_delegation_token(number integer, renew_ms bigint) RETURNS bigint
LANGUAGE sql AS $$
    UPDATE issued_token t
       SET ends_ms = least(t.max_ms, (extract(epoch FROM clock_timestamp()) * 1000)::bigint + renew_ms)
     WHERE t.sequence = number AND t.ends_ms > extract(epoch FROM clock_timestamp()) * 1000
    RETURNING t.ends_ms;
$$;
