-- The databases with the temporary tables of sessions that have died: their names begin with `prefix`, and the transaction
-- that the parameter `lease` of each names is open no more. Clients begin it before the database is there.
CREATE OR REPLACE FUNCTION abandoned_sessions(prefix text, lease text) RETURNS SETOF text
LANGUAGE sql STABLE AS $$
    SELECT d.name
      FROM database d
     WHERE starts_with(d.name, prefix)
       AND d.parameters ->> lease ~ '^[0-9]{1,18}$'
       AND NOT EXISTS (SELECT 1 FROM txn t
                        WHERE t.state = 'o' AND t.txn_id::text = d.parameters ->> lease)
$$;
