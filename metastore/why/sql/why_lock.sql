-- A request for locks: how many components it has, how many of them wait, whose it is, since when it is held (epoch
-- milliseconds), and on what. No components if it is not on record.
CREATE OR REPLACE FUNCTION why_lock(in_lock bigint)
RETURNS TABLE (components bigint, waiting bigint, txn_id bigint, user_name text, host_name text, agent_info text,
               acquired_ms bigint, held_on text)
LANGUAGE sql STABLE AS $$
    SELECT count(*), count(*) FILTER (WHERE l.state = 'w'), nullif(min(l.txn_id), 0), min(l.user_name), min(l.host_name),
           min(l.agent_info), epoch_ms(min(l.acquired_at)),
           string_agg(DISTINCT concat_ws('/', concat_ws('.', l.db, nullif(l.tbl, '')), nullif(l.partition, '')), ', ')
      FROM lock_component l WHERE l.lock_id = in_lock;
$$;
