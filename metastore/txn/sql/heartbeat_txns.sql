-- Puts down heartbeats of ranges of transactions, both ends included, each with its age and how many there were; those
-- that are not open any more are passed over. Returns how many transactions were alive.
CREATE OR REPLACE FUNCTION heartbeat_txns(firsts bigint[], lasts bigint[], ages_ms bigint[], counts integer[])
RETURNS TABLE (beaten bigint)
LANGUAGE plpgsql AS $$
DECLARE
    instant timestamptz := clock_timestamp();
BEGIN
    -- A heartbeat lost in a crash of Postgres costs nothing: time-outs are counted in minutes.
    PERFORM set_config('synchronous_commit', 'off', true);
    -- Locked in ascending order, like everywhere: nobody can deadlock.
    WITH beats AS MATERIALIZED (
        SELECT t.txn_id, min(r.age_ms) AS age_ms, sum(r.n) AS n
          FROM unnest(firsts, lasts, ages_ms, counts) AS r (first_id, last_id, age_ms, n)
          JOIN txn t ON t.txn_id BETWEEN r.first_id AND r.last_id AND t.state = 'o' AND t.durability <> 'l'
         GROUP BY t.txn_id
    ), live AS MATERIALIZED (
        SELECT t.txn_id FROM txn t
         WHERE t.txn_id IN (SELECT b.txn_id FROM beats b) AND t.state = 'o' ORDER BY t.txn_id FOR NO KEY UPDATE
    )
    UPDATE txn t
       SET heartbeat_at = greatest(t.heartbeat_at, instant - make_interval(secs => b.age_ms / 1000.0)),
           heartbeat_count = t.heartbeat_count + b.n,
           durability = 'd'  -- see keep_txns
      FROM beats b JOIN live l ON l.txn_id = b.txn_id
     WHERE t.txn_id = b.txn_id AND t.state = 'o';
    GET DIAGNOSTICS beaten = ROW_COUNT;
    RETURN NEXT;
END
$$;
