-- Of a pool (null: of those without one): how many compactions wait, how many are worked on, and when a worker last took
-- one up, in epoch milliseconds.
CREATE OR REPLACE FUNCTION queue_lengths(in_pool text)
RETURNS TABLE (waiting bigint, working bigint, last_taken_ms bigint)
LANGUAGE sql STABLE AS $$
    SELECT count(*) FILTER (WHERE c.state = 'i'), count(*) FILTER (WHERE c.state = 'w'), max(epoch_ms(c.started_at))
      FROM compaction c WHERE c.pool IS NOT DISTINCT FROM in_pool;
$$;
