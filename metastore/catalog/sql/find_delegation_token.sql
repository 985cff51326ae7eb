-- The token of a number, with its key; no row if there is none, or it has ended.
CREATE OR REPLACE FUNCTION find_delegation_token(number integer)
RETURNS TABLE (owner text, renewer text, real_user text, issued_ms bigint, max_ms bigint, key_id integer, key bytea)
LANGUAGE sql STABLE AS $$
    SELECT t.owner, t.renewer, t.real_user, t.issued_ms, t.max_ms, t.key_id, k.key
      FROM issued_token t JOIN token_key k ON k.id = t.key_id
     WHERE t.sequence = number AND t.ends_ms > extract(epoch FROM clock_timestamp()) * 1000;
$$;
