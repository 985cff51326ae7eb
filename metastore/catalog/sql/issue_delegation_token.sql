-- Issues a token for `of_owner`, by a key that is younger than `key_ms`, or `new_key`; no row if it has `most` already.
-- What has ended goes: tokens, and keys that no token can have any more.
CREATE OR REPLACE FUNCTION issue_delegation_token(
    of_owner text, by_renewer text, by_real_user text, new_key bytea, life_ms bigint, renew_ms bigint, key_ms bigint,
    most integer
) RETURNS TABLE (sequence integer, issued_ms bigint, max_ms bigint, key_id integer, key bytea)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    now_ms CONSTANT bigint := (extract(epoch FROM clock_timestamp()) * 1000)::bigint;
    chosen token_key%ROWTYPE;
BEGIN
    -- In ascending order, like everywhere: nobody can deadlock.
    DELETE FROM issued_token t USING (
        SELECT i.sequence FROM issued_token i WHERE i.ends_ms <= now_ms ORDER BY i.sequence LIMIT 1000
           FOR UPDATE SKIP LOCKED) AS ended
     WHERE t.sequence = ended.sequence;
    DELETE FROM token_key k USING (
        SELECT o.id FROM token_key o WHERE o.created_ms < now_ms - key_ms - life_ms
           AND NOT EXISTS (SELECT 1 FROM issued_token i WHERE i.key_id = o.id) ORDER BY o.id LIMIT 1000
           FOR UPDATE SKIP LOCKED) AS old
     WHERE k.id = old.id;
    IF (SELECT count(*) FROM issued_token i WHERE i.owner = of_owner) >= most THEN
        RETURN;
    END IF;
    -- Of a clock that was put back a key may be younger than now.
    SELECT * INTO chosen FROM token_key k WHERE k.created_ms BETWEEN now_ms - key_ms AND now_ms ORDER BY k.id DESC LIMIT 1;
    IF NOT FOUND THEN
        INSERT INTO token_key AS k (key, created_ms) VALUES (new_key, now_ms) RETURNING * INTO chosen;
    END IF;
    RETURN QUERY INSERT INTO issued_token AS i (owner, renewer, real_user, issued_ms, max_ms, ends_ms, key_id)
        VALUES (of_owner, by_renewer, by_real_user, now_ms, now_ms + life_ms, now_ms + least(renew_ms, life_ms), chosen.id)
        RETURNING i.sequence, i.issued_ms, i.max_ms, chosen.id, chosen.key;
END $$;
