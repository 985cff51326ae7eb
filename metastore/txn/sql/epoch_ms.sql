-- An instant as milliseconds since 1970, the form of all times on the wire.
CREATE OR REPLACE FUNCTION epoch_ms(instant timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE AS $$
    SELECT floor(extract(epoch FROM instant) * 1000)::bigint;
$$;
