-- Whether there was such a token; there is none any more.
CREATE OR REPLACE FUNCTION cancel_delegation_token(number integer) RETURNS boolean
LANGUAGE sql AS $$
    WITH gone AS (DELETE FROM issued_token t WHERE t.sequence = number RETURNING 1) SELECT EXISTS (SELECT 1 FROM gone);
$$;
